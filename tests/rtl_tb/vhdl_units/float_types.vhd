library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

package float_types is
  type request_t is record
    valid : std_logic;
    a, b  : std_logic_vector(31 downto 0);
  end record;
  type answer_t is record
    valid : std_logic;
    d     : std_logic_vector(31 downto 0);
  end record;
  type float_t is record
    sign     : std_logic;
    field    : unsigned(7 downto 0);
    fraction : unsigned(22 downto 0);
  end record;
  function float_of (code : std_logic_vector(31 downto 0)) return float_t;
  function is_nan (x : float_t) return boolean;
  function is_infinite (x : float_t) return boolean;
  function is_zero (x : float_t) return boolean;
  function significand (x : float_t) return unsigned;
  function exponent_of (x : float_t) return integer;
end package;

package body float_types is
  function float_of (code : std_logic_vector(31 downto 0)) return float_t is
  begin
    return (code(31), unsigned(code(30 downto 23)), unsigned(code(22 downto 0)));
  end function;
  function is_nan (x : float_t) return boolean is
  begin
    return x.field = 255 and x.fraction /= 0;
  end function;
  function is_infinite (x : float_t) return boolean is
  begin
    return x.field = 255 and x.fraction = 0;
  end function;
  function is_zero (x : float_t) return boolean is
  begin
    return x.field = 0 and x.fraction = 0;
  end function;
  function significand (x : float_t) return unsigned is
  begin
    if x.field = 0 then
      return '0' & x.fraction;
    end if;
    return '1' & x.fraction;
  end function;
  function exponent_of (x : float_t) return integer is
  begin
    if x.field = 0 then
      return -126;
    end if;
    return to_integer(x.field) - 127;
  end function;
end package body;
