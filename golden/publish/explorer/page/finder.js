// Finds an instruction: words, an architecture, types; the list is one step of the keyboard away.

import { h } from "./dom.js";

const MOST = 60;

export class Finder {
  // elements: {search, architecture, a, d, list, count}; `chosen(architecture, name)` is called.
  constructor(library, elements, chosen) {
    Object.assign(this, { library, elements, chosen });
    this.#options(
      elements.architecture,
      library.index.map(({ name, title }) => [name, title]),
    );
    for (const [element, operands] of [
      [elements.a, ["a", "b"]],
      [elements.d, ["d"]],
    ]) {
      const names = new Set(
        library.entries.flatMap(({ formats }) => operands.map((operand) => formats[operand])),
      );
      this.#options(
        element,
        [...names].sort().map((name) => [name, name]),
      );
    }
    for (const element of [elements.architecture, elements.a, elements.d]) {
      element.addEventListener("input", () => this.show());
    }
    elements.search.addEventListener("input", () => this.#typed());
    elements.search.addEventListener("keydown", (event) => this.#key(event, -1));
  }

  #options(select, pairs) {
    select.append(
      h("option", { value: "" }, "any"),
      ...pairs.map(([value, text]) => h("option", { value }, text)),
    );
  }

  // Asks for other units of these formats, until somebody asks for something.
  propose({ a, d }) {
    this.elements.a.value = a;
    this.elements.d.value = d;
    this.proposed = { a, d };
  }

  #typed() {
    const { a, d } = this.elements;
    if (this.proposed?.a === a.value && this.proposed?.d === d.value) a.value = d.value = "";
    this.proposed = null;
    this.show();
  }

  show() {
    const { search, architecture, a, d, list, count } = this.elements;
    const found = this.library.search(search.value, {
      architecture: architecture.value,
      a: a.value,
      d: d.value,
    });
    const total = found.reduce((sum, { shapes }) => sum + Math.max(shapes.length, 1), 0);
    const cut = found.length > MOST ? `, the first ${MOST} entries` : "";
    count.textContent = `${total} instruction${total === 1 ? "" : "s"}${cut}`;
    list.replaceChildren(...found.slice(0, MOST).map((entry, i) => h("li", {}, this.#item(entry, i))));
  }

  #item(entry, i) {
    const { name, architecture, machine, formats, shapes, k } = entry;
    const types = `${formats.a} \u00d7 ${formats.b} \u2192 ${formats.d}`;
    const more = shapes.length > 1 ? `, ${shapes.length} shapes` : "";
    return h(
      "button",
      {
        type: "button",
        class: "entry",
        onclick: () => this.chosen(architecture.name, name),
        onkeydown: (event) => this.#key(event, i),
      },
      h("code", {}, name),
      h(
        "span",
        { class: "small" },
        [architecture.title, types, `k = ${k}`, ...machine].join(" \u00b7 ") + more,
      ),
    );
  }

  // Arrows go from the field into the list and along it.
  #key(event, i) {
    const buttons = [...this.elements.list.querySelectorAll("button")];
    const to = { ArrowDown: i + 1, ArrowUp: i - 1 }[event.key];
    if (event.key === "Enter" && i < 0) buttons[0]?.click();
    if (to === undefined) return;
    event.preventDefault();
    (buttons[to] ?? (to < 0 ? this.elements.search : null))?.focus();
  }
}
