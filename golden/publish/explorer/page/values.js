// Numbers as people type them, and the codes nearest to them. Codes are found by asking the core what each
// stands for: no rounding is written here.

import { NAN, INFINITY, valueOf } from "./numbers.js";
import { decode } from "./core.js";

const DECIMAL = /^(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i;
const POWER = /^(?:(\d+)\s*\*\s*)?2\s*(?:\^|\*\*)\s*\(?([+-]?\d+)\)?$/;
const HEX_FLOAT = /^0x([0-9a-f]*)(?:\.([0-9a-f]*))?p([+-]?\d+)$/i;
const MOST_EXPONENT = 5000;

// What a text means: {sign, num, den} in BigInts, {special: "inf" or "nan", sign}, {code} for 0x..., or null.
export function parse(text) {
  const word = text
    .trim()
    .replace(/[\u2212]/g, "-")
    .replace(/_/g, "")
    .toLowerCase();
  if (/^0x[0-9a-f]+$/.test(word)) return { code: BigInt(word) };
  const sign = word.startsWith("-") ? 1 : 0;
  const rest = word.replace(/^[+-]/, "");
  if (rest === "inf" || rest === "infinity" || rest === "nan") return { special: rest.slice(0, 3), sign };
  const [above, below, more] = rest.split("/");
  if (more !== undefined) return null;
  const first = magnitude(above.trim());
  const second = below === undefined ? { num: 1n, den: 1n } : magnitude(below.trim());
  if (!first || !second || second.num === 0n) return null;
  return { sign, num: first.num * second.den, den: first.den * second.num };
}

function magnitude(text) {
  const power = POWER.exec(text);
  if (power) return scaled(BigInt(power[1] ?? 1), 2n, Number(power[2]));
  const hex = HEX_FLOAT.exec(text);
  if (hex)
    return scaled(BigInt(`0x0${hex[1]}${hex[2] ?? ""}`), 2n, Number(hex[3]) - 4 * (hex[2] ?? "").length);
  const decimal = DECIMAL.exec(text);
  if (!decimal || !(decimal[1] || decimal[2])) return null;
  return scaled(
    BigInt(`0${decimal[1]}${decimal[2] ?? ""}`),
    10n,
    Number(decimal[3] ?? 0) - (decimal[2] ?? "").length,
  );
}

function scaled(n, base, exponent) {
  if (Math.abs(exponent) > MOST_EXPONENT) return null;
  const power = base ** BigInt(Math.abs(exponent));
  return exponent < 0 ? { num: n, den: power } : { num: n * power, den: 1n };
}

// The code of a format nearest to what `parse` found, ties to even, and whether it is exact.
// Throws a RangeError with a sentence where the format has none.
export function encode(core, format, meant) {
  if (meant.code !== undefined) {
    if (meant.code >> BigInt(format.bits))
      throw new RangeError(
        `0x${meant.code.toString(16)} has more than the ${format.bits} bits of ${format.name}`,
      );
    return { code: meant.code, exact: true };
  }
  if (meant.special) return { code: special(format, meant), exact: true };
  return format.is_float ? nearest(core, format, meant) : integer(format, meant);
}

function special(format, { special: what, sign }) {
  if (!format[what === "nan" ? "has_nan" : "has_infinity"])
    throw new RangeError(`${format.name} has no ${what}`);
  return withSign(format, BigInt(format[what === "nan" ? "nan" : "infinity"]), sign);
}

function withSign(format, code, sign) {
  if (!sign) return code;
  if (!format.is_signed) throw new RangeError(`${format.name} has no negative numbers`);
  return code | (1n << BigInt(format.sign_shift));
}

function integer(format, { sign, num, den }) {
  let whole = num / den;
  const twice = 2n * (num % den);
  if (twice > den || (twice === den && whole & 1n)) whole += 1n;
  const value = sign ? -whole : whole;
  const high = BigInt(format.largest);
  const low = format.is_signed ? -high - 1n : 0n;
  if (value < low || value > high)
    throw new RangeError(`${value} is outside ${format.name}'s range ${low}..${high}`);
  return { code: BigInt.asUintN(format.bits, value), exact: num % den === 0n };
}

function nearest(core, format, { sign, num, den }) {
  const shift = BigInt(format.ignored_low);
  const rank = (index) => against(core, format, index << shift, num, den);
  let [low, high] = [0n, BigInt(format.largest) >> shift];
  const beyond = rank(high);
  if (beyond < 0) return outside(format, sign, high << shift, core, num, den);
  if (rank(low) > 0) return { code: signed(core, format, low << shift, sign), exact: false };
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (rank(middle) <= 0) low = middle;
    else high = middle;
  }
  if (rank(high) === 0) low = high;
  const exact = rank(low) === 0;
  if (!exact && closerAbove(core, format, low << shift, high << shift, num, den, low)) low = high;
  return { code: signed(core, format, low << shift, sign), exact };
}

// -0 where the format has one; the other negative zeros are NaNs.
function signed(core, format, code, sign) {
  const found = withSign(format, code, sign);
  return decode(core, format, [found])[0].kind >= INFINITY ? code : found;
}

// The sign of (value of a code) - num / den.
function against(core, format, code, num, den) {
  const { n, e } = valueOf(decode(core, format, [code])[0]);
  const left = e >= 0 ? (n << BigInt(e)) * den : n * den;
  const right = e >= 0 ? num : num << BigInt(-e);
  return left < right ? -1 : left > right ? 1 : 0;
}

function closerAbove(core, format, below, above, num, den, index) {
  const [x, y] = decode(core, format, [below, above]).map(valueOf);
  const e = Math.min(x.e, y.e);
  const middle = (x.n << BigInt(x.e - e)) + (y.n << BigInt(y.e - e)); // twice the middle
  const left = e >= 0 ? (middle << BigInt(e)) * den : middle * den;
  const right = 2n * (e >= 0 ? num : num << BigInt(-e));
  return left < right || (left === right && (index & 1n) === 1n);
}

// Beyond the largest number: infinity from half a unit of its last place on, the largest where there is none.
function outside(format, sign, largest, core, num, den) {
  const { n, e } = valueOf(decode(core, format, [largest])[0]);
  const edge = 2n * n + 1n;
  const left = e >= 1 ? (edge << BigInt(e - 1)) * den : edge * den;
  const right = e >= 1 ? num : num << BigInt(1 - e);
  const infinite = format.has_infinity && left <= right;
  return { code: withSign(format, infinite ? BigInt(format.infinity) : largest, sign), exact: false };
}

// The code of the next number above (1) or below (-1), by value; the same code at the ends.
export function step(core, format, code, direction) {
  const mask = (1n << BigInt(format.bits)) - 1n;
  if (!format.is_float) {
    const high = BigInt(format.largest);
    const top = format.is_signed ? (code + high + 1n) & mask : code;
    const next = top + BigInt(direction);
    if (next < 0n || next > mask) return code;
    return format.is_signed ? (next - high - 1n) & mask : next;
  }
  const unit = 1n << BigInt(format.ignored_low);
  const negative = format.is_signed && (code >> BigInt(format.sign_shift)) & 1n;
  const sign = format.is_signed ? 1n << BigInt(format.sign_shift) : 0n;
  const magnitude = (negative ? code ^ sign : code) & ~(unit - 1n);
  if (magnitude === 0n && direction < 0 && !negative)
    return format.is_signed && format.has_zero ? sign | unit : code;
  if (magnitude === 0n && direction > 0 && negative) return unit;
  const next = (negative ? -1 : 1) * direction > 0 ? magnitude + unit : magnitude - unit;
  if (next < 0n || next >= (sign || mask + 1n)) return code;
  const found = negative ? next | sign : next;
  if (decode(core, format, [found])[0].kind !== NAN) return found;
  return next === 0n ? 0n : code; // -0 may be a NaN
}
