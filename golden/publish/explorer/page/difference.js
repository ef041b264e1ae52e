// The first step at which two units part on the same operands, as golden/explain/first_difference.py says it.

import { FINITE, compare, describe, significandText, valueOf } from "./numbers.js";
import { eventsOf } from "./trace.js";

// {sentence, operation, step, ...}, or null where no register differs or the units run different steps first.
// `first` and `second`: {unit, numbers} of Unit.observe.
export function firstDifference(first, second) {
  const ours = eventsOf(first.unit, first.numbers);
  const theirs = eventsOf(second.unit, second.numbers);
  for (let i = 0; i < Math.min(ours.length, theirs.length); i++) {
    const [x, y] = [ours[i], theirs[i]];
    if (x.operation !== y.operation || x.op !== y.op) return null;
    const found = inRegisters(x, y);
    if (found) return found;
    if (x.code !== y.code)
      return result(x, x.code === null ? "goes on" : hex(x), y.code === null ? "goes on" : hex(y));
  }
  return null;
}

const hex = (event) => `0x${event.code.toString(16)}`;

function result(event, expected, actual) {
  return finding(event, "d", 0, expected, actual);
}

function inRegisters(x, y) {
  for (const [register, numbers] of Object.entries(x.written)) {
    const others = y.written[register] ?? [];
    for (let index = 0; index < Math.min(numbers.length, others.length); index++) {
      if (!same(numbers[index], others[index]))
        return finding(x, register, index, text(numbers[index]), text(others[index]));
    }
  }
  return null;
}

function finding(event, register, index, expected, actual) {
  const operation = event.operation ? ` of operation ${event.operation}` : "";
  const where = `step ${event.index + 1} (${event.op})${operation}`;
  return {
    operation: event.operation,
    step: event.index + 1,
    op: event.op,
    register,
    index,
    expected,
    actual,
    where,
  };
}

function same(x, y) {
  if (x.kind !== y.kind || x.sign !== y.sign || x.payload !== y.payload) return false;
  return x.kind !== FINITE || compare(valueOf(x), valueOf(y)) === 0;
}

function text(number) {
  const shown = number.kind === FINITE && number.significand;
  const digits = shown ? significandText(number) : "";
  return shown ? `${digits[0]}0b${digits.slice(1)} * 2^${number.exponent}` : describe(number);
}
