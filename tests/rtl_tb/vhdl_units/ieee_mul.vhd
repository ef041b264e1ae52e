-- An IEEE 754 multiplier of f32, to nearest even, with subnormal numbers. Operands and result are records; the sources of its
-- package lie in a library of their own.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
library floats;
use floats.float_types.all;

entity ieee_mul is
  port (
    clk, rst : in  std_logic;
    request  : in  request_t;
    answer   : out answer_t);
end entity;

architecture rtl of ieee_mul is
  function multiplied (a, b : float_t) return std_logic_vector is
    variable product  : unsigned(47 downto 0);
    variable wide     : unsigned(97 downto 0);
    variable exponent : integer;
    variable sign     : std_logic;
    variable kept     : unsigned(31 downto 0);
    variable sticky   : std_logic;
  begin
    sign := a.sign xor b.sign;
    if is_nan(a) or is_nan(b) or (is_infinite(a) and is_zero(b)) or (is_infinite(b) and is_zero(a)) then
      return x"7FC00000";
    elsif is_infinite(a) or is_infinite(b) then
      return sign & "111" & x"F800000";
    end if;
    product := significand(a) * significand(b);
    if product = 0 then
      return sign & "000" & x"0000000";
    end if;
    exponent := exponent_of(a) + exponent_of(b) + 1;  -- of the highest bit of the product
    while product(47) = '0' loop
      product := product(46 downto 0) & '0';
      exponent := exponent - 1;
    end loop;
    wide := product & to_unsigned(0, 50);
    if exponent < -126 then
      if -126 - exponent > 49 then
        wide := to_unsigned(1, 98);
      else
        wide := shift_right(wide, -126 - exponent);
      end if;
      kept := to_unsigned(0, 8) & wide(97 downto 74);
    else
      kept := (to_unsigned(exponent + 127 - 1, 9) & to_unsigned(0, 23)) + resize(wide(97 downto 74), 32);
    end if;
    sticky := '0';
    for i in 0 to 72 loop
      sticky := sticky or wide(i);
    end loop;
    if wide(73) = '1' and (sticky = '1' or kept(0) = '1') then
      kept := kept + 1;
    end if;
    if kept(31 downto 23) > 254 then
      kept := x"7F800000";
    end if;
    return sign & std_logic_vector(kept(30 downto 0));
  end function;
begin
  process (clk)
  begin
    if rising_edge(clk) then
      answer.valid <= request.valid and not rst;
      answer.d <= multiplied(float_of(request.a), float_of(request.b));
    end if;
  end process;
end architecture;
