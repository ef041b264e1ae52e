// The error of random dot products by the fraction bits that alignment keeps: the unit's own program with
// other widths, run in the core, against exact sums.

import { Unit } from "./core.js";
import { INFINITY, NOTHING, add, valueOf } from "./numbers.js";
import { errorUlp, exactTerms } from "./trace.js";
import { encode } from "./values.js";
import { h, s } from "./dom.js";

const LEAST = 6,
  MOST = 30;
const NOT_GIVEN = -(2 ** 31);
const WIDTH = 640,
  HEIGHT = 300,
  LEFT = 62,
  BOTTOM = 44,
  TOP = 14,
  NAME_HEIGHT = 13;

// The fraction bits of each alignment; empty where the unit has none.
export function ownBits(unit) {
  const steps = unit.program.operations.flatMap((operation, o) =>
    operation.steps.filter((_, i) => unit.told.operations[o].steps[i].op === "align"),
  );
  return steps.flatMap((step) => (step.fraction_bits ?? [0]).slice(0, step.of_count));
}

// The unit with F fraction bits in every alignment, in every register.
function withBits(unit, bits) {
  const told = structuredClone(unit.told);
  told.program.operations.forEach((operation, o) => {
    operation.steps.forEach((step, i) => {
      if (told.operations[o].steps[i].op !== "align") return;
      step.fraction_bits = Array.from({ length: 4 }, (_, r) => (r < step.of_count ? bits : NOT_GIVEN));
    });
  });
  return new Unit(unit.core, told, unit.formats);
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

// The plot of `errorsByBits`, F across, error upwards in powers of two; the unit's own F is marked.
export function plot(found, own) {
  const levels = found
    .flatMap(({ errors }) => QUANTILES.map(([, share]) => level(quantile(errors, share))))
    .filter(Number.isFinite);
  const [low, high] = [Math.floor(Math.min(...levels, -2)), Math.ceil(Math.max(...levels, 1))];
  const x = (bits) => LEFT + ((bits - LEAST) / (MOST - LEAST)) * (WIDTH - LEFT - 90);
  const y = (power) => TOP + ((high - power) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const label = `Error in ULP by F: ${found.length} widths, ${found[0].errors.length} dot products each`;
  const svg = s("svg", {
    class: "mg-picture plot",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    "aria-label": label,
  });
  svg.append(
    ...grid(x, y, low, high),
    ...own.filter((bits) => bits >= LEAST && bits <= MOST).map((bits) => mark(x(bits), bits)),
  );
  const curves = QUANTILES.map(([name, share]) => ({ name, points: pointsOf(found, share, x, y, low) }));
  curves.forEach(({ points }, i) =>
    svg.append(
      s("polyline", {
        class: `curve curve${i}`,
        points: points.map((point) => point.map((one) => one.toFixed(1)).join()).join(" "),
      }),
    ),
  );
  svg.append(...names(curves));
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label }, svg);
}

const level = (error) => (error > 0 ? Math.log2(error) : -Infinity);

function grid(x, y, low, high) {
  const parts = [];
  const stride = Math.max(Math.ceil((high - low) / 10), 1);
  for (let power = high; power >= low; power -= stride) {
    parts.push(s("line", { class: "mg-line faint", x1: LEFT, x2: WIDTH - 90, y1: y(power), y2: y(power) }));
    parts.push(
      s("text", { class: "mg-muted tick", x: LEFT - 8, y: y(power) + 4, "text-anchor": "end" }, `2^${power}`),
    );
  }
  for (let bits = LEAST; bits <= MOST; bits += 4)
    parts.push(
      s(
        "text",
        { class: "mg-muted tick", x: x(bits), y: HEIGHT - 26, "text-anchor": "middle" },
        String(bits),
      ),
    );
  parts.push(
    s(
      "text",
      { class: "mg-text tick", x: (LEFT + WIDTH - 90) / 2, y: HEIGHT - 8, "text-anchor": "middle" },
      "F, fraction bits kept in alignment",
    ),
  );
  parts.push(
    s(
      "text",
      {
        class: "mg-text tick",
        x: 12,
        y: HEIGHT / 2,
        "text-anchor": "middle",
        transform: `rotate(-90 12 ${HEIGHT / 2})`,
      },
      "error, ULP",
    ),
  );
  return parts;
}

function mark(x, bits) {
  return s(
    "g",
    {},
    s("line", { class: "mg-line own", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }),
    s("text", { class: "mg-text tick", x: x + 4, y: TOP + 10 }, `F = ${bits}`),
  );
}

function pointsOf(found, share, x, y, low) {
  return found.map(({ bits, errors }) => [x(bits), y(Math.max(level(quantile(errors, share)), low))]);
}

// Names beside the ends of the curves, the lowest curve first, each at least a line of text above the last.
function names(curves) {
  let limit = Infinity;
  return curves.map(({ name, points }) => {
    const [x, y] = points.at(-1);
    limit = Math.min(y + 4, limit - NAME_HEIGHT);
    return s("text", { class: "mg-text tick", x: x + 6, y: limit }, name);
  });
}
