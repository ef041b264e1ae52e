// The numbers of a step as a picture: every bit in the column of its weight, what is cut hatched.

import { FINITE, INFINITY, bitLength, describe, significandText } from "./numbers.js";
import { h, s } from "./dom.js";

const CELL = 9,
  ROW = 20,
  LABEL = 118,
  TOP = 26,
  VALUE = 190;
const MOST_COLUMNS = 110;

// A row of the picture: {label, sign, bits, low (exponent of the lowest), lost (bits right below), value}.
export function rowOf(label, number, integer, cut = null) {
  const finite = number.kind <= FINITE && number.significand !== undefined && number.kind < INFINITY;
  const places = Math.max(number.fraction_bits, 0);
  const lost = cut && cut.significand ? cut.significand.toString(2).padStart(cut.fraction_bits, "0") : "";
  return {
    label,
    sign: finite && number.sign ? "\u2212" : finite && !integer ? "+" : "",
    bits: finite ? number.significand.toString(2).padStart(places + 1, "0") : "",
    low: number.exponent - number.fraction_bits,
    lost,
    value: describe(number, integer),
    text: significandText(number, integer),
    empty: finite && number.significand === 0n && !lost,
  };
}

// The rows of what a rounding took and gave: the exact number with what is cut, and the result.
export function roundingRows({ exact, rounded }, integer, where = "") {
  if (!exact || !rounded || exact.kind >= INFINITY) return [];
  const rows = [rowOf(`${where}exact`, exact, integer), rowOf(`${where}rounded`, rounded, integer)];
  if (rounded.kind !== FINITE || exact.kind !== FINITE) return rows;
  const [taken, given] = rows;
  const cut = Math.min(Math.max(given.low - taken.low, 0), taken.bits.length);
  if (cut) {
    taken.lost = taken.bits.slice(taken.bits.length - cut);
    taken.bits = taken.bits.slice(0, taken.bits.length - cut);
    taken.low += cut;
  }
  return rows;
}

// The figure of some rows; null where none has a bit.
export function picture(rows, caption) {
  const shown = rows.filter((row) => !row.empty);
  const spans = shown.filter((row) => row.bits || row.lost).map(spanOf);
  if (!spans.length) return null;
  const high = Math.max(...spans.map(([top]) => top));
  const low = Math.max(Math.min(...spans.map(([, bottom]) => bottom)), high - MOST_COLUMNS + 1);
  const width = LABEL + (high - low + 1) * CELL + VALUE;
  const height = TOP + shown.length * ROW + 4;
  const svg = s("svg", {
    class: "mg-picture bits",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": caption,
  });
  svg.append(axis(high, low, height), ...shown.flatMap((row, i) => drawn(row, TOP + i * ROW, high, low)));
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, svg);
}

function spanOf({ bits, low, lost }) {
  const ones = bits.replace(/^0+(?=.)/, ""); // leading zeros need no column
  return [low + Math.max(ones.length, 1) - 1, low - lost.length];
}

const column = (exponent, high) => LABEL + (high - exponent) * CELL;

function axis(high, low, height) {
  const marks = [];
  for (let exponent = high; exponent >= low; exponent--) {
    if (exponent % 8) continue;
    const x = column(exponent, high);
    marks.push(s("line", { class: "mg-line faint", x1: x + CELL, x2: x + CELL, y1: TOP - 6, y2: height }));
    marks.push(
      s("text", { class: "mg-muted tick", x: x + CELL / 2, y: 14, "text-anchor": "middle" }, `2^${exponent}`),
    );
  }
  return s("g", { "aria-hidden": "true" }, ...marks);
}

function drawn(row, y, high, low) {
  const parts = [
    s("text", { class: "mg-text label", x: LABEL - 24, y: y + 14, "text-anchor": "end" }, row.label),
  ];
  const [top] = row.bits || row.lost ? spanOf(row) : [high];
  const kept = row.bits.slice(Math.max(row.bits.length - (top - row.low + 1), 0));
  if (row.sign)
    parts.push(
      s("text", { class: "mg-text digit", x: LABEL - 12, y: y + 14, "text-anchor": "middle" }, row.sign),
    );
  if (kept) parts.push(...run(kept, top, y, "mg-block", high, low));
  if (row.lost) parts.push(...run(row.lost, row.low - 1, y, "mg-lost", high, low));
  const end = column(low, high) + CELL + 10;
  parts.push(s("text", { class: "mg-text value", x: end, y: y + 14 }, `= ${row.value}`));
  return parts;
}

// Bits from the exponent `top` down; those beyond the last column are counted.
function run(bits, top, y, style, high, low) {
  const visible = bits.slice(0, Math.max(top - low + 1, 0));
  const hidden = bits.length - visible.length;
  const parts = [];
  if (visible) {
    const [x, width] = [column(top, high), visible.length * CELL];
    parts.push(s("rect", { class: style, x, y, width, height: ROW - 4 }));
    if (style === "mg-lost") parts.push(s("rect", { x, y, width, height: ROW - 4, fill: "url(#hatch)" }));
    const places = [...visible].map((_, i) => x + i * CELL + CELL / 2).join(" ");
    parts.push(s("text", { class: "mg-text digit", x: places, y: y + 12, "text-anchor": "middle" }, visible));
  }
  if (hidden) {
    const x = column(low, high) + CELL;
    parts.push(s("text", { class: "mg-muted digit", x: x + 1, y: y + 12 }, "\u2026"));
  }
  return parts;
}
