// The operands of a dot product: a table of codes and values, and one of them taken apart into its bits.

import { describe, hexText } from "./numbers.js";
import { columnOf } from "./trace.js";
import { encode, parse, step } from "./values.js";
import { h } from "./dom.js";

const MOST_ROWS = 16;

// All operands at rest: zeros, scales of one, the first columns.
export function atRest(unit) {
  const { spec } = unit;
  const rest = (name) => {
    if (name === "metadata") return BigInt(Object.keys(spec.sparsity.nibbles)[0]);
    return BigInt(spec.scale_of_one[name] ?? 0);
  };
  return Object.fromEntries(
    Object.entries(unit.sizes).map(([name, size]) => [name, Array(size).fill(rest(name))]),
  );
}

// The operands of one unit for another: the same codes where the formats are one, else the nearest numbers.
export function carried(from, operands, to) {
  const found = atRest(to);
  for (const [name, codes] of Object.entries(found)) {
    const given = operands[name];
    if (!given) continue;
    for (let i = 0; i < Math.min(codes.length, given.length); i++) {
      if (name === "metadata") codes[i] = to.spec.sparsity.nibbles[given[i]] ? given[i] : codes[i];
      else
        codes[i] = sameFormat(from, to, name) ? given[i] : (converted(from, to, name, given[i]) ?? codes[i]);
    }
  }
  return found;
}

function sameFormat(from, to, name) {
  return JSON.stringify(from.format(name)) === JSON.stringify(to.format(name));
}

function converted(from, to, name, code) {
  const [number] = from.decode(name, [code]);
  const text = describe(number, !from.format(name).is_float);
  try {
    return encode(to.core, to.format(name), parse(text)).code;
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

// The operands of a preset, or null where the unit cannot hold them.
export function ofPreset(unit, preset) {
  const operands = atRest(unit);
  for (const [name, format] of Object.entries(preset.formats ?? {}))
    if (unit.format(name).name !== format) return null;
  for (const name of ["a", "b", "c"]) {
    const texts = name === "c" ? [preset.c] : preset[name];
    if (!operands[name]) {
      if (name === "c" && Number(preset.c) !== 0) return null;
      continue;
    }
    const columns = name === "b" ? texts.map((_, i) => columnOf(unit, operands, i)) : texts.map((_, i) => i);
    if (texts.length > operands.a.length && name !== "c") return null;
    for (const [i, text] of texts.entries()) {
      try {
        const { code, exact } = encode(unit.core, unit.format(name), parse(text));
        if (!exact && !preset.rounded) return null;
        operands[name][columns[i]] = code;
      } catch (error) {
        if (error instanceof RangeError) return null;
        throw error;
      }
    }
  }
  return operands;
}

// The table and the editor. `changed(operands)` is called after each change, `selected` is {name, index}.
export class OperandView {
  constructor(table, editor, changed) {
    Object.assign(this, { table, editor, changed, all: false, selected: { name: "a", index: 0 } });
  }

  show(unit, operands) {
    Object.assign(this, { unit, operands });
    const { name, index } = this.selected;
    if (!(operands[name]?.length > index)) this.selected = { name: Object.keys(operands)[0], index: 0 };
    this.#drawTable();
    this.#drawEditor();
  }

  #text(name, code) {
    return describe(this.unit.decode(name, [code])[0], !this.unit.format(name).is_float);
  }

  #set(name, index, code) {
    const codes = [...this.operands[name]];
    codes[index] = code;
    this.selected = { name, index };
    this.changed({ ...this.operands, [name]: codes });
  }

  #drawTable() {
    const { unit, operands } = this;
    const focused = document.activeElement?.dataset?.cell;
    const columns = ["a", "b"].filter((name) => operands[name]);
    const shown = this.all ? unit.program.k : Math.min(unit.program.k, MOST_ROWS);
    const head = [
      h("th", { scope: "col" }, "k"),
      ...columns.flatMap((name) => [
        h("th", { scope: "col" }, `${name} (${unit.format(name).name})`),
        h("th", { scope: "col" }, "value"),
      ]),
    ];
    if (operands.metadata) head.push(h("th", { scope: "col" }, "column of b"));
    const rows = Array.from({ length: shown }, (_, k) => this.#row(k, columns));
    const single = ["c", "metadata", "scale_a", "scale_b"].filter((name) => operands[name]);
    this.table.replaceChildren(
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "group", "aria-label": "Elements of a and b" },
        h("table", { class: "operands" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)),
      ),
      ...(shown < unit.program.k || this.all ? [this.#more()] : []),
      h(
        "div",
        { class: "singles" },
        ...single.flatMap((name) => operands[name].map((_, i) => this.#single(name, i))),
      ),
    );
    if (focused) this.table.querySelector(`[data-cell="${focused}"]`)?.focus();
  }

  #more() {
    const label = this.all ? `Show the first ${MOST_ROWS}` : `Show all ${this.unit.program.k} elements`;
    return h(
      "button",
      {
        type: "button",
        class: "plain",
        onclick: () => {
          this.all = !this.all;
          this.#drawTable();
        },
      },
      label,
    );
  }

  #row(k, columns) {
    const column = columnOf(this.unit, this.operands, k);
    const cells = columns.flatMap((name) =>
      this.#cells(name, name === "b" ? column : k, `${name} at k = ${k}`),
    );
    const where = this.operands.metadata ? [h("td", {}, String(column))] : [];
    return h("tr", {}, h("th", { scope: "row" }, String(k)), ...cells, ...where);
  }

  #cells(name, index, label) {
    const here = this.selected.name === name && this.selected.index === index;
    const code = this.operands[name][index];
    return [
      h("td", { class: here ? "selected" : null }, this.#input(name, index, label)),
      h("td", { class: code ? "value" : "value none" }, this.#text(name, code)),
    ];
  }

  #input(name, index, label) {
    const format = name === "metadata" ? { bits: 4 } : this.unit.format(name);
    return h("input", {
      ...{
        value: hexText(this.operands[name][index], format),
        size: Math.ceil(format.bits / 4) + 3,
        "aria-label": label,
        "data-cell": `${name}-${index}`,
      },
      ...{ spellcheck: "false", autocomplete: "off", class: "code" },
      onfocus: () => this.#select(name, index),
      onchange: (event) => this.#typed(name, index, event.target),
      onkeydown: (event) => this.#key(event, name, index),
    });
  }

  #single(name, i) {
    const count = this.operands[name].length;
    const label = count > 1 ? `${name}[${i}]` : name;
    const what =
      name === "metadata"
        ? `selects ${this.unit.spec.sparsity.nibbles[this.operands[name][i]]}`
        : this.#text(name, this.operands[name][i]);
    const here = this.selected.name === name && this.selected.index === i;
    return h(
      "label",
      { class: here ? "selected" : null },
      h("span", {}, label),
      this.#input(name, i, label),
      h("span", { class: "value" }, what),
    );
  }

  #select(name, index) {
    if (this.selected.name === name && this.selected.index === index) return;
    this.selected = { name, index };
    for (const one of this.table.querySelectorAll(".selected")) one.classList.remove("selected");
    this.table.querySelector(`[data-cell="${name}-${index}"]`)?.parentElement.classList.add("selected");
    this.#drawEditor();
  }

  // Arrows up and down go to the next element, with Alt they step its value.
  #key(event, name, index) {
    const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!direction || name === "metadata") return;
    event.preventDefault();
    if (event.altKey)
      this.#set(
        name,
        index,
        step(this.unit.core, this.unit.format(name), this.operands[name][index], direction),
      );
    else this.table.querySelector(`[data-cell="${name}-${index - direction}"]`)?.focus();
  }

  #typed(name, index, input) {
    const complaint = this.#take(name, index, input.value);
    input.setCustomValidity(complaint);
    if (complaint) input.reportValidity();
  }

  // Takes a text as an operand; returns what is wrong with it, or nothing.
  #take(name, index, text) {
    const meant = parse(text);
    if (!meant) return `'${text}' is no number; such as 1.5, -2^-7, 0x1.8p3, inf, nan, or 0x3c00 for a code`;
    if (name === "metadata") return this.#takeNibble(index, meant);
    try {
      this.#set(name, index, encode(this.unit.core, this.unit.format(name), meant).code);
      return "";
    } catch (error) {
      if (error instanceof RangeError) return error.message;
      throw error;
    }
  }

  #takeNibble(index, { code, num }) {
    const nibble = code ?? num;
    const { nibbles } = this.unit.spec.sparsity;
    if (!(nibble in nibbles))
      return `metadata is one of ${Object.keys(nibbles)
        .map((one) => `0x${Number(one).toString(16)}`)
        .join(", ")}`;
    this.#set("metadata", index, nibble);
    return "";
  }

  // The selected operand's bits by field -----------------------------------------------------------------

  #drawEditor() {
    const { name, index } = this.selected;
    const focused = document.activeElement?.dataset?.edit;
    if (name === "metadata") {
      this.editor.replaceChildren(
        h("p", { class: "small" }, "A nibble of metadata says which columns of a chunk are stored."),
      );
      return;
    }
    const { unit } = this;
    const format = unit.format(name);
    const code = this.operands[name][index];
    const label = this.operands[name].length > 1 ? `${name}[${index}]` : name;
    const move = (direction) => () => this.#set(name, index, step(unit.core, format, code, direction));
    this.editor.replaceChildren(
      h(
        "div",
        { class: "editor-head" },
        h("strong", {}, label),
        h("span", { class: "small" }, format.name),
        this.#valueInput(name, index, code),
      ),
      h(
        "div",
        { class: "bits", role: "group", "aria-label": `Bits of ${label}, the highest first` },
        ...this.#bits(name, index, format, code),
      ),
      h(
        "div",
        { class: "buttons" },
        h(
          "button",
          { type: "button", "data-edit": "down", onclick: move(-1), "aria-label": "next number below" },
          "\u2212 1 ulp",
        ),
        h(
          "button",
          { type: "button", "data-edit": "up", onclick: move(1), "aria-label": "next number above" },
          "+ 1 ulp",
        ),
        h("button", { type: "button", "data-edit": "zero", onclick: () => this.#set(name, index, 0n) }, "0"),
        h("button", { type: "button", "data-edit": "one", onclick: () => this.#take(name, index, "1") }, "1"),
      ),
    );
    if (focused) this.editor.querySelector(`[data-edit="${focused}"]`)?.focus();
  }

  #valueInput(name, index, code) {
    return h("input", {
      ...{
        class: "number",
        value: this.#text(name, code),
        "aria-label": "value",
        "data-edit": "value",
        spellcheck: "false",
        autocomplete: "off",
      },
      onchange: (event) => this.#typed(name, index, event.target),
    });
  }

  #bits(name, index, format, code) {
    return Array.from({ length: format.bits }, (_, i) => {
      const place = format.bits - 1 - i;
      const set = (code >> BigInt(place)) & 1n;
      const field = fieldOf(format, place);
      return h(
        "button",
        {
          ...{
            type: "button",
            class: `bit ${field}`,
            "aria-pressed": set ? "true" : "false",
            "aria-label": `bit ${place}, ${field}`,
            "data-edit": `bit${place}`,
          },
          onclick: () => this.#set(name, index, code ^ (1n << BigInt(place))),
          onkeydown: moveFocus,
        },
        String(set),
      );
    });
  }
}

function fieldOf(format, place) {
  if (!format.is_float) return "fraction";
  if (place < format.ignored_low) return "ignored";
  if (place < format.ignored_low + format.fraction_bits) return "fraction";
  if (place < format.ignored_low + format.fraction_bits + format.exponent_bits) return "exponent";
  return format.is_signed && place === format.sign_shift ? "sign" : "ignored";
}

// Arrows left and right go from bit to bit.
function moveFocus(event) {
  const next = { ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling" }[event.key];
  if (!next) return;
  event.preventDefault();
  event.target[next]?.focus();
}
