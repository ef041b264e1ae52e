-- The sum of four products of signed bytes, added to a register of the unit's own, saturated; `clear` starts a new sum.
-- VHDL-93, in the packages that were common then.
library ieee;
use ieee.std_logic_1164.all;
use ieee.std_logic_arith.all;
use ieee.std_logic_signed.all;

entity sum_of_bytes is
  port (
    clk, rst_n, valid_in, ready_in, clear : in  std_logic;
    ready_out, valid_out                  : out std_logic;
    a, b                                  : in  std_logic_vector(31 downto 0);
    d                                     : out std_logic_vector(31 downto 0));
end sum_of_bytes;

architecture rtl of sum_of_bytes is
  signal held           : std_logic_vector(31 downto 0);
  signal total          : std_logic_vector(32 downto 0);
  signal products       : std_logic_vector(32 downto 0);
  signal valid, running : std_logic;
begin
  running <= ready_in or not valid;
  ready_out <= running;
  valid_out <= valid;
  d <= held;

  products <= SXT(a(7 downto 0) * b(7 downto 0), 33) + SXT(a(15 downto 8) * b(15 downto 8), 33)
              + SXT(a(23 downto 16) * b(23 downto 16), 33) + SXT(a(31 downto 24) * b(31 downto 24), 33);
  total <= products when clear = '1' else products + SXT(held, 33);

  process (clk, rst_n)
  begin
    if rst_n = '0' then
      valid <= '0';
      held <= (others => '0');
    elsif clk'event and clk = '1' then
      if running = '1' then
        valid <= valid_in;
        if valid_in = '1' then
          if total(32) = total(31) then
            held <= total(31 downto 0);
          elsif total(32) = '1' then
            held <= X"80000000";
          else
            held <= X"7FFFFFFF";
          end if;
        end if;
      end if;
    end if;
  end process;
end rtl;
