// The error of random dot products by the fraction bits that alignment keeps: the unit's own program with
// other widths, run in the core, against exact sums.

import { Unit } from "./core.js";
import { INFINITY, NOTHING, add, valueOf } from "./numbers.js";
import { errorUlp, exactTerms } from "./trace.js";
import { encode } from "./values.js";
import { s } from "./dom.js";

// Values of F that are tried.
const LEAST = 6;
const MOST = 30;
const NOT_GIVEN = -(2 ** 31);
// The plot, in pixels.
const LEAST_WIDTH = 300;
const MOST_WIDTH = 640;
const HEIGHT = 300;
const LEFT = 62;
const BOTTOM = 44;
const TOP = 14;
const NAMES = 56;
const NAME_HEIGHT = 13;

// The fraction bits of each alignment; empty where the unit has none.
export function ownBits(unit) {
  const steps = unit.program.operations.flatMap((operation, o) =>
    operation.steps.filter((_, i) => unit.spec.operations[o].steps[i].op === "align"),
  );
  return steps.flatMap((step) => (step.fraction_bits ?? [0]).slice(0, step.of_count));
}

// The unit with F fraction bits in every alignment, in every register.
function withBits(unit, bits) {
  const spec = structuredClone(unit.spec);
  spec.program.operations.forEach((operation, o) => {
    operation.steps.forEach((step, i) => {
      if (spec.operations[o].steps[i].op !== "align") return;
      step.fraction_bits = Array.from({ length: 4 }, (_, r) => (r < step.of_count ? bits : NOT_GIVEN));
    });
  });
  return new Unit(unit.core, spec, unit.formats);
}

// A repeatable source of numbers from N(0, 1).
export function gaussian(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

// Operands from N(0, 1), rounded to their formats; scales are one, metadata at rest.
export function randomOperands(unit, draw, rest) {
  const code = (operand) => {
    const x = draw();
    const format = unit.format(operand);
    const [sign, magnitude] = [
      x < 0 && format.is_signed ? 1 : 0,
      Math.abs(format.is_float ? x : x * Math.min(Number(format.largest) / 4, 100)),
    ];
    return encode(unit.core, format, { sign, num: BigInt(Math.round(magnitude * 2 ** 40)), den: 2n ** 40n })
      .code;
  };
  return Object.fromEntries(
    Object.entries(unit.sizes).map(([name, size]) => [
      name,
      ["a", "b", "c"].includes(name) ? Array.from({ length: size }, () => code(name)) : rest[name],
    ]),
  );
}

// For each F the sorted magnitudes of the errors in ULP of the exact sum.
export async function errorsByBits(unit, many, progress) {
  const format = unit.format("d");
  const exact = many.map((operands) => exactTerms(unit, operands).reduce(add, NOTHING));
  const found = [];
  for (let bits = LEAST; bits <= MOST; bits++) {
    const other = withBits(unit, bits);
    const results = other.decode("d", other.run(many));
    other.free();
    const errors = results.map((result, i) =>
      result.kind < INFINITY ? Math.abs(errorUlp(valueOf(result), exact[i], format)) : Infinity,
    );
    found.push({ bits, errors: errors.sort((x, y) => x - y) });
    progress(bits - LEAST + 1, MOST - LEAST + 1);
    await new Promise((resume) => setTimeout(resume)); // the page stays alive
  }
  return found;
}

const QUANTILES = [
  ["median", 0.5],
  ["95 %", 0.95],
  ["largest", 1],
];

export const quantile = (errors, share) =>
  errors[Math.min(Math.ceil(share * errors.length), errors.length) - 1];

// The plot of `errorsByBits`, `width` pixels wide: F across, error upwards in powers of two; the unit's own F
// is marked.
export function plot(found, own, width) {
  const frame = frameOf(found, Math.min(Math.max(width, LEAST_WIDTH), MOST_WIDTH));
  const label = `Error in ULP by F: ${found.length} widths, ${found[0].errors.length} dot products each`;
  const size = { width: frame.width, height: HEIGHT, viewBox: `0 0 ${frame.width} ${HEIGHT}` };
  const curves = QUANTILES.map(([name, share]) => ({
    name,
    points: found.map(({ bits, errors }) => [frame.x(bits), frame.y(level(quantile(errors, share)))]),
  }));
  const marks = own.filter((bits) => bits >= LEAST && bits <= MOST).map((bits) => mark(frame.x(bits), bits));
  return s(
    "svg",
    { class: "mg-picture plot", role: "img", "aria-label": label, ...size },
    ...grid(frame),
    ...marks,
    ...curves.map(curve),
    ...names(curves),
  );
}

const level = (error) => (error > 0 ? Math.log2(error) : -Infinity);

// Where F and error lie; errors below the scale lie at its foot.
function frameOf(found, width) {
  const levels = found.flatMap(({ errors }) => QUANTILES.map(([, share]) => level(quantile(errors, share))));
  const finite = levels.filter(Number.isFinite);
  const [low, high] = [Math.floor(Math.min(...finite, -2)), Math.ceil(Math.max(...finite, 1))];
  const right = width - NAMES;
  const x = (bits) => LEFT + ((bits - LEAST) / (MOST - LEAST)) * (right - LEFT);
  const y = (power) =>
    TOP + ((high - Math.min(Math.max(power, low), high)) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  return { width, right, low, high, x, y };
}

const text = (style, x, y, content, anchor = "middle", more = {}) =>
  s("text", { class: `${style} tick`, x, y, "text-anchor": anchor, ...more }, content);

function grid({ right, low, high, x, y }) {
  const parts = [];
  const stride = Math.max(Math.ceil((high - low) / 10), 1);
  for (let power = high; power >= low; power -= stride) {
    parts.push(s("line", { class: "mg-line faint", x1: LEFT, x2: right, y1: y(power), y2: y(power) }));
    parts.push(text("mg-muted", LEFT - 8, y(power) + 4, `2^${power}`, "end"));
  }
  for (let bits = LEAST; bits <= MOST; bits += 4) {
    parts.push(text("mg-muted", x(bits), HEIGHT - 26, String(bits)));
  }
  const turned = { transform: `rotate(-90 12 ${HEIGHT / 2})` };
  parts.push(text("mg-text", (LEFT + right) / 2, HEIGHT - 8, "F, fraction bits kept in alignment"));
  parts.push(text("mg-text", 12, HEIGHT / 2, "error, ULP", "middle", turned));
  return parts;
}

function mark(x, bits) {
  const line = s("line", { class: "mg-line own", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM });
  return s("g", {}, line, text("mg-text", x + 4, TOP + 10, `F = ${bits}`, "start"));
}

function curve({ points }, i) {
  const path = points.map((point) => point.map((one) => one.toFixed(1)).join()).join(" ");
  return s("polyline", { class: `curve curve${i}`, points: path });
}

// Names at the ends of the curves, the lowest curve first, each at least a line of text above the last.
function names(curves) {
  let limit = Infinity;
  return curves.map(({ name, points }) => {
    const [x, y] = points.at(-1);
    limit = Math.min(y + 4, limit - NAME_HEIGHT);
    return text("mg-text", x + 6, limit, name, "start");
  });
}
