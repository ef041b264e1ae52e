-- A multiply-accumulate whose ports need the keys of dut.yaml: a in two ports, b in the low bits of a wider one that it
-- reads whole, c a cycle later, the sum extended to 32 bits, and an output that says that b was -128.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

entity split_mac is
  port (
    clk, start : in  std_logic;
    a_low      : in  std_logic_vector(3 downto 0);
    a_high     : in  signed(3 downto 0);
    b          : in  signed(11 downto 0);
    c          : in  signed(16 downto 0);
    done, err  : out std_logic;
    y          : out signed(31 downto 0));
end entity;

architecture rtl of split_mac is
  signal product     : signed(19 downto 0);
  signal going, least : std_logic := '0';
begin
  process (clk)
  begin
    if rising_edge(clk) then
      going <= start;
      product <= (a_high & signed(a_low)) * b;
      least <= '0';
      if b = -128 then
        least <= '1';
      end if;
      done <= going;
      err <= least;
      y <= resize(resize(product, 17) + c, 32);
    end if;
  end process;
end architecture;
