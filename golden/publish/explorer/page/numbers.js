// Exact numbers and their texts. A value is {n, e}, the BigInt n times 2 to the e; texts are those of
// golden/explain/trace.py, which the tests hold them to.

// enum mg_kind
export const ZERO = 0;
export const FINITE = 1;
export const INFINITY = 2;
export const NAN = 3;

const MANY_BITS = 24;
const MOST_DOUBLE_EXPONENT = 1023,
  LEAST_DOUBLE_PLACE = -1074,
  DOUBLE_BITS = 53;

export const NOTHING = { n: 0n, e: 0 };

export function bitLength(n) {
  return n === 0n ? 0 : (n < 0n ? -n : n).toString(2).length;
}

// The value of an observed number that is finite.
export function valueOf(number) {
  return {
    n: number.sign ? -number.significand : number.significand,
    e: number.exponent - number.fraction_bits,
  };
}

export function add(x, y) {
  if (x.n === 0n) return y;
  if (y.n === 0n) return x;
  const e = Math.min(x.e, y.e);
  return { n: (x.n << BigInt(x.e - e)) + (y.n << BigInt(y.e - e)), e };
}

export const negate = (x) => ({ n: -x.n, e: x.e });
export const subtract = (x, y) => add(x, negate(y));
export const multiply = (x, y) => ({ n: x.n * y.n, e: x.e + y.e });

// Less than 0, 0 or more than 0.
export function compare(x, y) {
  const { n } = subtract(x, y);
  return n < 0n ? -1 : n > 0n ? 1 : 0;
}

// The exponent of the leading bit.
export const leading = (x) => bitLength(x.n) - 1 + x.e;

// The nearest double, ties to even; infinite where the value is beyond them.
export function toDouble(x) {
  if (x.n === 0n) return 0;
  const magnitude = x.n < 0n ? -x.n : x.n;
  const place = Math.max(leading(x) - DOUBLE_BITS + 1, LEAST_DOUBLE_PLACE);
  const cut = place - x.e;
  let kept = cut > 0 ? magnitude >> BigInt(cut) : magnitude << BigInt(-cut);
  if (cut > 0) {
    const half = 1n << BigInt(cut - 1);
    const rest = magnitude & ((half << 1n) - 1n);
    if (rest > half || (rest === half && kept & 1n)) kept += 1n;
  }
  const sign = x.n < 0n ? -1 : 1;
  if (bitLength(kept) - 1 + place > MOST_DOUBLE_EXPONENT) return sign * Infinity;
  const near = Number(kept); // two factors, since 2 ** -1074 times a large number is no double's power
  return (
    sign *
    (place < -1000
      ? near * 2 ** (place + 1000) * 2 ** -1000
      : place > 900
        ? near * 2 ** 900 * 2 ** (place - 900)
        : near * 2 ** place)
  );
}

// A double as Python spells it: the shortest digits that mean it.
export function doubleText(x) {
  if (x === Infinity) return "inf";
  if (x === -Infinity) return "-inf";
  if (Object.is(x, -0)) return "-0.0";
  const [digits, exponent] = Math.abs(x).toExponential().split("e");
  const places = Number(exponent);
  const sign = x < 0 ? "-" : "";
  if (x !== 0 && (places < -4 || places >= 16)) {
    return `${sign}${digits}e${places < 0 ? "-" : "+"}${String(Math.abs(places)).padStart(2, "0")}`;
  }
  const all = digits.replace(".", "");
  if (places < 0) return `${sign}0.${"0".repeat(-places - 1)}${all}`;
  const whole = all.slice(0, places + 1).padEnd(places + 1, "0");
  return `${sign}${whole}.${all.slice(places + 1) || "0"}`;
}

// A value as n*2^e with n odd, exact; without the power where e is 0.
export function powerText(x) {
  if (x.n === 0n) return "0";
  const zeros = trailingZeros(x.n);
  const [odd, e] = [x.n >> BigInt(zeros), x.e + zeros];
  return e ? `${odd}*2^${e}` : String(odd);
}

function trailingZeros(n) {
  return bitLength(n & -n) - 1;
}

// The nearest double, or n*2^e where no double is near.
export function floatText(x) {
  const near = toDouble(x);
  return x.n !== 0n && (near === 0 || !Number.isFinite(near)) ? powerText(x) : doubleText(near);
}

export const integerText = (x) => String(x.e >= 0 ? x.n << BigInt(x.e) : x.n >> BigInt(-x.e));

// An observed number for a reader.
export function describe(number, integer = false) {
  if (integer) return integerText(valueOf(number));
  if (number.kind === NAN) return "nan";
  const sign = number.sign ? "-" : "+";
  if (number.kind === INFINITY) return `${sign}inf`;
  return number.significand === 0n ? `${sign}0` : floatText(valueOf(number));
}

// The significand in binary with its point.
export function significandText(number, integer = false) {
  if (number.kind >= INFINITY) return "-";
  const places = Math.max(number.fraction_bits, 0);
  const digits = number.significand.toString(2).padStart(places + 1, "0");
  const point = digits.length - places;
  const sign = number.sign ? "-" : integer ? "" : "+";
  return sign + digits.slice(0, point) + (places ? `.${digits.slice(point)}` : "");
}

// What an alignment cut off one term; empty where all of it is zero.
export function lostBits(cut) {
  return cut.significand ? cut.significand.toString(2).padStart(cut.fraction_bits, "0") : "";
}

// Of many bits the leading zeros are counted.
export function shortenedBits(bits) {
  if (bits.length <= MANY_BITS) return bits;
  const ones = bits.replace(/^0+/, "");
  const zeros = bits.length - ones.length;
  const shown = ones.length <= MANY_BITS ? ones : `${ones.slice(0, MANY_BITS - 3)}...`;
  return zeros ? `${zeros} zeros, ${shown}` : shown;
}

export function hexText(code, format) {
  return `0x${code.toString(16).padStart(Math.ceil(format.bits / 4), "0")}`;
}
