-- Four-way multiply-accumulate of signed bytes, saturated to 32 bits: ../own_unit/mac4.sv in VHDL, with the same ports.
-- Two generics make it wrong, for a look at a failure: product DROPPED (0 to 3; 4 is none) is left out of the sum, and the
-- last bit of the result is value number LAST_BIT of std_ulogic (0 is 'U', 1 'X', 4 'Z', 5 'W', 8 '-'; 9: as it should be).

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

entity mac4 is
  generic (
    DROPPED  : natural := 4;
    LAST_BIT : natural := 9);
  port (
    clock : in  std_logic;
    reset : in  std_logic;
    vld_i : in  std_logic;
    rdy_o : out std_logic;
    x_i   : in  std_logic_vector(31 downto 0);  -- four bytes, the first in the low bits
    w_i   : in  std_logic_vector(31 downto 0);
    acc_i : in  std_logic_vector(31 downto 0);
    vld_o : out std_logic;
    rdy_i : in  std_logic;
    acc_o : out std_logic_vector(31 downto 0));
end entity;

architecture rtl of mac4 is
  signal valid, ready : std_logic;

  function saturated (sum : signed(35 downto 0)) return std_logic_vector is
    variable within : signed(35 downto 0);
  begin
    within := resize(sum(31 downto 0), 36);
    if is_x(std_logic_vector(sum)) then
      return std_logic_vector'(31 downto 0 => 'X');
    elsif within = sum then
      return std_logic_vector(sum(31 downto 0));
    elsif sum < 0 then
      return x"80000000";
    end if;
    return x"7FFFFFFF";
  end function;
begin
  vld_o <= valid;
  rdy_o <= ready;
  ready <= rdy_i or not valid;

  process (clock)
    variable sum : signed(35 downto 0);
  begin
    if rising_edge(clock) then
      if reset = '1' then
        valid <= '0';
      elsif ready = '1' then
        valid <= vld_i;
      end if;
      if vld_i = '1' and ready = '1' then
        sum := resize(signed(acc_i), 36);
        for k in 0 to 3 loop
          if k /= DROPPED then
            sum := sum + signed(x_i(8 * k + 7 downto 8 * k)) * signed(w_i(8 * k + 7 downto 8 * k));
          end if;
        end loop;
        acc_o <= saturated(sum);
        if LAST_BIT < 9 then
          acc_o(0) <= std_ulogic'val(LAST_BIT);
        end if;
      end if;
    end if;
  end process;
end architecture;
