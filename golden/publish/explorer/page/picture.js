// The numbers of a step as a picture: every bit in the column of its weight, what is cut hatched.

import { FINITE, INFINITY, bitLength, describe, significandText } from "./numbers.js";
import { h, s } from "./dom.js";

// Lengths in pixels.
const CELL = 9;
const ROW = 20;
const LETTER = 7; // of a label
const SIGN = 26; // between the labels and the bits
const TOP = 26;
const VALUE = 190;
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
  const left = Math.max(...shown.map(({ label }) => label.length)) * LETTER + SIGN;
  const frame = { high, low, left, column: (exponent) => left + (high - exponent) * CELL };
  const width = frame.column(low) + CELL + VALUE;
  const height = TOP + shown.length * ROW + 4;
  const size = { width, height, viewBox: `0 0 ${width} ${height}` };
  const svg = s("svg", { class: "mg-picture bits", role: "img", "aria-label": caption, ...size });
  svg.append(axis(frame, height), ...shown.flatMap((row, i) => drawn(row, TOP + i * ROW, frame)));
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, svg);
}

function spanOf({ bits, low, lost }) {
  const ones = bits.replace(/^0+(?=.)/, ""); // leading zeros need no column
  return [low + Math.max(ones.length, 1) - 1, low - lost.length];
}

const text = (style, x, y, content, anchor = "middle") =>
  s("text", { class: style, x, y, "text-anchor": anchor }, content);

function axis({ high, low, column }, height) {
  const marks = [];
  for (let exponent = high; exponent >= low; exponent--) {
    if (exponent % 8) continue;
    const x = column(exponent);
    marks.push(s("line", { class: "mg-line faint", x1: x + CELL, x2: x + CELL, y1: TOP - 6, y2: height }));
    marks.push(text("mg-muted tick", x + CELL / 2, 14, `2^${exponent}`));
  }
  return s("g", { "aria-hidden": "true" }, ...marks);
}

function drawn(row, y, frame) {
  const { left, high, low, column } = frame;
  const [top] = row.bits || row.lost ? spanOf(row) : [high];
  const kept = row.bits.slice(Math.max(row.bits.length - (top - row.low + 1), 0));
  return [
    text("mg-text label", left - SIGN + 4, y + 14, row.label, "end"),
    ...(row.sign ? [text("mg-text digit", left - SIGN / 2 + 2, y + 14, row.sign)] : []),
    ...(kept ? run(kept, top, y, "mg-block", frame) : []),
    ...(row.lost ? run(row.lost, row.low - 1, y, "mg-lost", frame) : []),
    text("mg-text value", column(low) + CELL + 10, y + 14, `= ${row.value}`, "start"),
  ];
}

// Bits from the exponent `top` down; dots stand for those beyond the last column.
function run(bits, top, y, style, { low, column }) {
  const visible = bits.slice(0, Math.max(top - low + 1, 0));
  const parts = [];
  if (visible) {
    const box = { x: column(top), y, width: visible.length * CELL, height: ROW - 4 };
    parts.push(s("rect", { class: style, ...box }));
    if (style === "mg-lost") parts.push(s("rect", { fill: "url(#hatch)", ...box }));
    const places = [...visible].map((_, i) => box.x + i * CELL + CELL / 2).join(" ");
    parts.push(text("mg-text digit", places, y + 12, visible));
  }
  if (visible.length < bits.length)
    parts.push(text("mg-muted digit", column(low) + CELL + 1, y + 12, "\u2026", "start"));
  return parts;
}
