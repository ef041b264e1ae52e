// The explanation of one dot product, of what the core shows of its registers: the same document as
// `Trace.as_dict` of golden/explain/trace.py, to which the tests hold it. No step is computed here.

import {
  FINITE,
  INFINITY,
  NOTHING,
  ZERO,
  add,
  describe,
  floatText,
  hexText,
  integerText,
  leading,
  lostBits,
  multiply,
  negate,
  powerText,
  significandText,
  subtract,
  toDouble,
  valueOf,
} from "./numbers.js";

const NEGATED = { product: [1, 3], c: [2, 3] }; // enum mg_negate_word: none, product, c, both
const ROUNDING = ["left", "right", "exact", "unbounded", "rounded"]; // moments, in the order of their records
export const BY_K = ["products", "a", "b"]; // registers with an element for each k

// The trace; `events` holds the same steps with the observed numbers themselves, for pictures.
export function trace(unit, operands) {
  const { spec } = unit;
  const { d, numbers, raised } = unit.observe(operands);
  const events = eventsOf(unit, numbers);
  const result = unit.decode("d", [d])[0];
  const terms = exactTerms(unit, operands);
  const exact = terms && terms.reduce(add, NOTHING);
  const format = unit.format("d");
  return {
    instruction: spec.name,
    architecture: spec.architecture,
    operands: operandRows(unit, operands),
    ...(spec.absent.includes("c") ? {} : codeAndValue(unit, "c", operands.c[0])),
    steps: events.map((event) => stepOf(unit, event)),
    ...codeAndValue(unit, "d", d),
    ...(raised ? { flags: flagsText(spec.status, raised) } : {}),
    exact: exact && (spec.integer ? integerText(exact) : powerText(exact)),
    exact_value: exact && (spec.integer ? integerText(exact) : floatText(exact)),
    error_ulp: exact && result.kind < INFINITY ? errorUlp(valueOf(result), exact, format) : null,
    events,
    code: d,
    exactValue: exact,
  };
}

// The code of the raised flags, and their names: "0x8: inexact".
function flagsText(status, raised) {
  const code = raised.reduce((sum, name) => sum | (1 << status.indexOf(name)), 0);
  return `0x${code.toString(16)}: ${raised.join(", ") || "none"}`;
}

function codeAndValue(unit, operand, code) {
  const format = unit.format(operand);
  return { [operand]: hexText(code, format), [`${operand}_value`]: describeCode(unit, operand, code) };
}

export function describeCode(unit, operand, code) {
  return describe(unit.decode(operand, [code])[0], !unit.format(operand).is_float);
}

// The index into b that product i meets.
export function columnOf(unit, operands, i) {
  const { sparsity } = unit.spec;
  if (!sparsity) return i;
  const stored = sparsity.chunk / 2;
  const chunk = Math.floor(i / stored);
  return chunk * sparsity.chunk + sparsity.nibbles[operands.metadata[chunk]][i % stored];
}

function operandRows(unit, operands) {
  const { spec, program } = unit;
  return Array.from({ length: program.k }, (_, k) => {
    const b = spec.absent.includes("b")
      ? {}
      : codeAndValue(unit, "b", operands.b[columnOf(unit, operands, k)]);
    return { k, ...codeAndValue(unit, "a", operands.a[k]), ...b };
  });
}

// (result - exact) in units of the last place that the exact value has in the format.
export function errorUlp(result, exact, format) {
  const { n, e } = subtract(result, exact);
  return toDouble({ n, e: e - lastPlace(exact, format) });
}

function lastPlace(exact, format) {
  if (!format.is_float) return 0;
  const least = format.min_exponent;
  return Math.max(exact.n === 0n ? least : leading(exact), least) - format.fraction_bits;
}

// c and every product in exact numbers; null where an operand is infinite or NaN.
export function exactTerms(unit, operands) {
  const { spec, program } = unit;
  const absent = (name) => spec.absent.includes(name);
  const a = unit.decode("a", operands.a);
  const b = absent("b") ? unit.decode("b", Array(spec.k).fill(0n)) : unit.decode("b", operands.b);
  const c = unit.decode("c", absent("c") ? [0n] : operands.c)[0];
  const scales = spec.scale_block
    ? [unit.decode("scale_a", operands.scale_a), unit.decode("scale_b", operands.scale_b)]
    : [];
  const signs = signsOf(unit);
  const terms = [[c]];
  for (let k = 0; k < program.k; k++) {
    const shared = scales.map((some) => some[Math.floor(k / program.scale_block)]);
    const column = columnOf(unit, operands, k);
    if (spec.bit_operation) terms.push([bitProduct(spec.bit_operation, operands.a[k], operands.b[column])]);
    else terms.push([a[k], b[column], ...shared]);
  }
  if (terms.flat().some((number) => number.kind >= INFINITY)) return null;
  return terms.map((factors, i) => {
    const value = factors.map(valueOf).reduce(multiply);
    return signs[i] < 0 ? negate(value) : value;
  });
}

function bitProduct(operation, x, y) {
  const bit = operation === "xor" ? x ^ y : x & y;
  return { kind: bit ? FINITE : ZERO, sign: 0, significand: bit, exponent: 0, fraction_bits: 0 };
}

// -1 for c and for every product whose sign the program turns.
function signsOf({ program, spec }) {
  const signs = Array(program.k + 1).fill(1);
  program.operations.forEach((operation, o) => {
    operation.steps.forEach((step, s) => {
      if (spec.operations[o].steps[s].op !== "multiply") return;
      if (NEGATED.c.includes(step.negate) && spec.operations[o].seed === "c") signs[0] = -signs[0];
      if (NEGATED.product.includes(step.negate))
        for (const k of operation.k_index) signs[k + 1] = -signs[k + 1];
    });
  });
  return signs;
}

// Events: the steps that ran, each with the numbers it wrote ------------------------------------------------

// Sorts records by step. An operation that special values end has no records of its later steps.
export function eventsOf(unit, numbers) {
  const notRun = unit.core.words.not_run;
  const records = unit.layout.map((place, i) => ({
    ...place,
    number: numbers[i],
    ran: numbers[i].kind !== notRun,
  }));
  return unit.spec.operations.flatMap((operation, o) => {
    const own = records.filter((record) => record.operation === o);
    const code = own.find((record) => record.moment === "result").number.payload;
    const before = registersOf(own.filter((record) => record.step === -1));
    const events = [];
    for (const [s, step] of operation.steps.entries()) {
      const event = eventOf(
        o,
        s,
        step,
        own.filter((record) => record.step === s && record.moment !== "result"),
        before,
      );
      if (!event.ran) break;
      events.push(event);
    }
    events.at(-1).code = code;
    return events;
  });
}

function registersOf(records) {
  const registers = {};
  for (const { register, moment, number } of records)
    if (moment === "register") (registers[register] ??= []).push(number);
  return registers;
}

function eventOf(operation, index, step, records, registers) {
  const made = ["register", "exact"].flatMap((moment) =>
    records.filter((record) => record.moment === moment),
  );
  const written = registersOf(records);
  const cuts = {};
  for (const { moment, register, number, ran } of records) {
    if (moment === "cut") (cuts[register] ??= []).push(ran ? number : null);
  }
  const maxima = records
    .filter(({ moment, ran }) => moment === "maximum" && ran)
    .map(({ number }) => number.exponent);
  const before = { ...registers };
  Object.assign(registers, written);
  return {
    operation,
    index,
    ...step,
    before,
    written,
    cuts,
    maxima,
    roundings: roundingsOf(records),
    ran: !made.length || made[0].ran,
    code: null,
  };
}

// The roundings inside a step: {index, left, right, exact, unbounded, rounded}, null for what is not there.
function roundingsOf(records) {
  const found = [];
  let last = "";
  for (const { moment, index, number, ran } of records) {
    if (!ROUNDING.includes(moment)) continue;
    if (ROUNDING.indexOf(moment) <= ROUNDING.indexOf(last) || !found.length) found.push({ index });
    found.at(-1)[moment] = ran ? number : null;
    last = moment;
  }
  return found;
}

// An event as `_step_dict` of golden/explain/trace.py says it.
function stepOf(unit, event) {
  const { spec, program } = unit;
  const operation = spec.operations[event.operation];
  const { k_index, out_format } = program.operations[event.operation];
  const rows = [];
  for (const [register, numbers] of Object.entries(event.written)) {
    numbers.forEach((number, index) => {
      const row = {
        register,
        index,
        value: describe(number, spec.integer),
        significand: significandText(number, spec.integer),
        exponent: number.kind !== FINITE || spec.integer ? null : number.exponent,
      };
      if (BY_K.includes(register) && numbers.length === k_index.length) row.k = k_index[index];
      const cut = event.cuts[register]?.[index];
      if (cut) Object.assign(row, { shift: cut.exponent, lost: lostBits(cut) });
      rows.push(row);
    });
  }
  return {
    operation: event.operation,
    algorithm: operation.algorithm,
    seed: operation.seed,
    step: event.op,
    max_exponents: event.maxima,
    rows,
    result: event.code === null ? null : hexText(event.code, unit.formats[out_format]),
  };
}
