-- Four products of f16 and an f32, aligned to the largest exponent, cut at 23 fraction bits, added, cut to f32:
-- the step of Volta's HMMA.884.F32.F32 (MMA-Sim, section IV-C). Two stages, results follow their operands by two cycles.
library ieee;
use ieee.std_logic_1164.all;

package rz_types is
  type half_vector is array (natural range <>) of std_logic_vector(15 downto 0);
end package;

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.rz_types.all;

entity rz_sum is
  generic (TERMS : positive := 4; FLOOR : integer := -131);
  port (
    clk  : in  std_ulogic;
    en   : in  std_ulogic;
    a, b : in  half_vector(0 to TERMS - 1);
    c    : in  std_logic_vector(31 downto 0);
    d    : out std_logic_vector(0 to 31));
end entity;

architecture rtl of rz_sum is
  constant F : natural := 23;
  type exponents is array (natural range <>) of integer range -512 to 511;
  type terms_t is array (natural range <>) of unsigned(F + 1 downto 0);
  signal sign            : std_logic_vector(0 to TERMS);
  signal live            : std_logic_vector(0 to TERMS);
  signal exponent        : exponents(0 to TERMS);
  signal term            : terms_t(0 to TERMS);
  signal nan, plus, minus : std_logic;

  function exponent_of (field : std_logic_vector; bias : natural) return integer is
  begin
    if unsigned(field) = 0 then
      return 1 - bias;
    end if;
    return to_integer(unsigned(field)) - bias;
  end function;

  function all_ones (field : std_logic_vector) return boolean is
  begin
    return unsigned(not field) = 0;
  end function;

  function significand (field, fraction : std_logic_vector) return unsigned is
  begin
    if unsigned(field) = 0 then
      return unsigned('0' & fraction);
    end if;
    return unsigned('1' & fraction);
  end function;

  function rounded (total : signed; largest : integer) return std_logic_vector is
    variable size  : unsigned(total'length - 1 downto 0);
    variable wide  : unsigned(63 downto 0);
    variable field : integer;
    variable first : natural := 0;
    variable found : std_logic_vector(31 downto 0);
  begin
    size := unsigned(abs total);
    for i in size'range loop
      if size(i) = '1' then
        first := i;
        exit;
      end if;
    end loop;
    field := largest - F + first + 127;
    wide := shift_left(resize(size, 64), 32);
    if field < 1 then  -- subnormal: in units of 2**-149
      wide := shift_right(wide, 32 - (largest - F + 149));
      field := 0;
    else
      wide := shift_right(wide, 32 + first - F);
    end if;
    if wide(F downto 0) = 0 then
      return x"00000000";
    elsif field > 254 then
      found := x"7F800000";
    else
      found := '0' & std_logic_vector(to_unsigned(field, 8)) & std_logic_vector(wide(F - 1 downto 0));
    end if;
    found(31) := total(total'left);
    return found;
  end function;
begin
  decode : process (clk)
    variable any_nan, any_plus, any_minus : std_logic;
    variable infinite, zero               : boolean;
    variable negative                     : std_logic;
  begin
    if rising_edge(clk) and en = '1' then
      any_nan := '0';
      any_plus := '0';
      any_minus := '0';
      for k in 0 to TERMS - 1 loop
        negative := a(k)(15) xor b(k)(15);
        sign(k) <= negative;
        exponent(k) <= exponent_of(a(k)(14 downto 10), 15) + exponent_of(b(k)(14 downto 10), 15);
        term(k) <= shift_left(resize(significand(a(k)(14 downto 10), a(k)(9 downto 0))
                                     * significand(b(k)(14 downto 10), b(k)(9 downto 0)), F + 2), F - 20);
        zero := unsigned(a(k)(14 downto 0)) = 0 or unsigned(b(k)(14 downto 0)) = 0;
        live(k) <= '0' when zero else '1';
        infinite := false;
        if all_ones(a(k)(14 downto 10)) or all_ones(b(k)(14 downto 10)) then
          infinite := not zero;
          if zero then
            any_nan := '1';
          end if;
          if all_ones(a(k)(14 downto 10)) and unsigned(a(k)(9 downto 0)) /= 0 then
            any_nan := '1';
          end if;
          if all_ones(b(k)(14 downto 10)) and unsigned(b(k)(9 downto 0)) /= 0 then
            any_nan := '1';
          end if;
        end if;
        if infinite and negative = '1' then
          any_minus := '1';
        elsif infinite then
          any_plus := '1';
        end if;
      end loop;
      sign(TERMS) <= c(31);
      exponent(TERMS) <= exponent_of(c(30 downto 23), 127);
      term(TERMS) <= '0' & significand(c(30 downto 23), c(22 downto 0));
      live(TERMS) <= '0' when unsigned(c(30 downto 0)) = 0 else '1';
      if all_ones(c(30 downto 23)) then
        if unsigned(c(22 downto 0)) /= 0 then
          any_nan := '1';
        elsif c(31) = '1' then
          any_minus := '1';
        else
          any_plus := '1';
        end if;
      end if;
      nan <= any_nan or (any_plus and any_minus);
      plus <= any_plus;
      minus <= any_minus;
    end if;
  end process;

  add : process (clk)
    variable largest : integer;
    variable total   : signed(28 downto 0);
    variable aligned : unsigned(F + 1 downto 0);
  begin
    if rising_edge(clk) and en = '1' then
      largest := FLOOR;
      for k in 0 to TERMS loop
        if live(k) = '1' and exponent(k) > largest then
          largest := exponent(k);
        end if;
      end loop;
      total := (others => '0');
      for k in 0 to TERMS loop
        aligned := (others => '0');
        if live(k) = '1' then
          aligned := shift_right(term(k), largest - exponent(k));
        end if;
        if sign(k) = '1' then
          total := total - signed(resize(aligned, total'length));
        else
          total := total + signed(resize(aligned, total'length));
        end if;
      end loop;
      if nan = '1' then
        d <= x"7FFFFFFF";
      elsif plus = '1' then
        d <= x"7F800000";
      elsif minus = '1' then
        d <= x"FF800000";
      else
        d <= rounded(total, largest);
      end if;
    end if;
  end process;
end architecture;
