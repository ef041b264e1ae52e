// The steps of one trace: each with its sentence, what it wrote as a picture, and the same as a table.

import { FINITE, compare, shortenedBits, valueOf } from "./numbers.js";
import { picture, roundingRows, rowOf } from "./picture.js";
import { h } from "./dom.js";
import { BY_K } from "./trace.js";

const MOST_ROWS = 48; // of a picture; the table has them all

// A list of the steps of a trace of `unit`; the step that `parts` names is marked.
export function stepList(unit, traced, parts) {
  const items = [];
  let operation = -1;
  traced.events.forEach((event, i) => {
    if (event.operation !== operation && unit.spec.operations.length > 1)
      items.push(operationHead(unit, event.operation));
    operation = event.operation;
    items.push(stepItem(unit, event, traced.steps[i], parts));
  });
  return h("ol", { class: "steps" }, ...items);
}

function operationHead(unit, number) {
  const { algorithm, seed } = unit.spec.operations[number];
  const ks = unit.program.operations[number].k_index;
  const range = ks.length ? `k = ${ks[0]} to ${ks.at(-1)}` : "no products";
  return h(
    "li",
    { class: "operation" },
    h("strong", {}, algorithm),
    ` \u2014 operation ${number}, ${range}, from ${seed}`,
  );
}

function stepItem(unit, event, entry, parts) {
  const here = parts && parts.operation === event.operation && parts.step === event.index + 1;
  const maxima = entry.max_exponents.length
    ? h("p", { class: "small" }, `largest exponent ${entry.max_exponents.join(", ")}`)
    : null;
  return h(
    "li",
    { class: here ? "parts" : null },
    h("h4", {}, h("code", {}, event.op), here ? h("span", { class: "badge" }, "they differ here") : null),
    h("p", { class: "small" }, event.text),
    maxima,
    drawing(unit, event),
    table(entry),
    entry.result ? h("p", {}, "result ", h("code", {}, entry.result)) : null,
  );
}

function drawing(unit, event) {
  const { integer } = unit.spec;
  const ks = unit.program.operations[event.operation].k_index;
  const rows = Object.entries(event.written).flatMap(([register, numbers]) =>
    numbers.map((number, i) => {
      const place = BY_K.includes(register) && numbers.length === ks.length ? ks[i] : i;
      return rowOf(
        numbers.length > 1 ? `${register}[${place}]` : register,
        number,
        integer,
        event.cuts[register]?.[i],
      );
    }),
  );
  rows.push(
    ...event.roundings.flatMap((one, i, all) =>
      isTold(one, all)
        ? roundingRows(one, integer, all.length > 1 ? `${placeOf(event, ks, one, i)} ` : "")
        : [],
    ),
  );
  const zeros = rows.filter((row) => row.empty).length;
  const drawn = picture(
    rows.filter((row) => !row.empty).slice(0, MOST_ROWS),
    `The numbers that ${event.op} writes, bit by bit`,
  );
  const more = rows.length - zeros - MOST_ROWS;
  const notes = [
    zeros ? `${zeros} zero${zeros > 1 ? "s" : ""}` : "",
    more > 0 ? `${more} more in the table` : "",
  ].filter(Boolean);
  return [drawn, notes.length ? h("p", { class: "small" }, `and ${notes.join(", ")}`) : null];
}

// Of many roundings in a step those that change a number.
function isTold({ exact, rounded }, all) {
  if (!exact || !rounded) return false;
  const finite = exact.kind <= FINITE && rounded.kind <= FINITE;
  return all.length === 1 || !finite || compare(valueOf(exact), valueOf(rounded)) !== 0;
}

function placeOf({ op }, ks, { index }, i) {
  return op === "fma" ? `k=${ks[index] ?? index}` : `#${i}`;
}

function table({ rows }) {
  if (!rows.length) return null;
  const cuts = rows.some((row) => "shift" in row);
  const exponents = rows.some((row) => row.exponent !== null);
  const heads = [
    "register",
    "significand",
    ...(exponents ? ["exponent"] : []),
    ...(cuts ? ["shift", "cut"] : []),
    "value",
  ];
  const cells = (row) => [
    h("th", { scope: "row" }, `${row.register}[${row.k ?? row.index}]`),
    h("td", {}, h("code", {}, row.significand)),
    exponents ? h("td", {}, row.exponent === null ? "" : `2^${row.exponent}`) : null,
    cuts ? h("td", {}, String(row.shift ?? "")) : null,
    cuts ? h("td", {}, h("code", {}, shortenedBits(row.lost ?? ""))) : null,
    h("td", {}, row.value),
  ];
  return h(
    "details",
    {},
    h("summary", {}, "as a table"),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": "Numbers of the step" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            heads.map((head) => h("th", { scope: "col" }, head)),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row) => h("tr", {}, cells(row))),
        ),
      ),
    ),
  );
}
