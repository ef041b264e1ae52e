// The instructions that the page knows: the index at once, the programs of an architecture on demand.

import { CoreError, Unit } from "./core.js";

const SHAPE = /m\d+n\d+(?=k\d+)/;
export const OWN = "custom"; // stands for the architecture of a unit that was pasted

export class Library {
  #programs = new Map();
  #units = new Map();

  constructor(core, index) {
    this.core = core;
    this.index = index;
    this.own = new Map();
    this.entries = index.flatMap((architecture) =>
      architecture.instructions.map(({ name, unit, kind, ...places }) => {
        const lists = Object.entries(places).map(([key, place]) => [key, architecture.shared[place]]);
        return { name, unit, architecture, ...architecture.shared[kind], ...Object.fromEntries(lists) };
      }),
    );
    this.cards = new Set(index.flatMap(({ words }) => words));
  }

  // The entries that every word of the text fits: a card or target, a type of operands, or a part of a name.
  // Those come first whose machine name or name begins with it.
  search(text, { architecture, a, d }) {
    const all = plainWord(text);
    const wanted = this.cards.has(all) ? [all] : text.split(/\s+/).filter(Boolean);
    const found = this.entries.filter(
      (entry) =>
        (!architecture || entry.architecture.name === architecture) &&
        (!a || entry.formats.a === a || entry.formats.b === a) &&
        (!d || entry.formats.d === d) &&
        wanted.every((word) => fits(entry, word)),
    );
    const first = plainName(wanted[0] ?? "");
    const rank = ({ name, machine }) =>
      machine.some((one) => plainName(one) === first) ? 0 : plainName(name).startsWith(first) ? 1 : 2;
    return found.sort((x, y) => rank(x) - rank(y));
  }

  // The entry that a name means; also of another M and N than the one it is listed under.
  entry(architecture, name) {
    const shape = SHAPE.exec(name)?.[0];
    return this.entries.find(
      (entry) =>
        entry.architecture.name === architecture &&
        (entry.name === name ||
          (shape && entry.shapes.includes(shape) && entry.name.replace(SHAPE, shape) === name)),
    );
  }

  // The unit of an instruction or of a pasted one; throws a CoreError where there is none of the name.
  async unit(architecture, name) {
    const key = `${architecture}:${name}`;
    if (!this.#units.has(key)) this.#units.set(key, await this.#load(architecture, name));
    return this.#units.get(key);
  }

  async #load(architecture, name) {
    if (architecture === OWN && this.own.has(name)) {
      const { spec, formats } = this.own.get(name);
      return new Unit(this.core, spec, formats);
    }
    const entry = this.entry(architecture, name);
    if (!entry) throw new CoreError(`no instruction '${architecture}:${name}' here`);
    const programs = await this.#programsOf(architecture);
    return new Unit(this.core, { ...programs.units[entry.unit], name }, programs.formats);
  }

  // A script element works from a file, too, where fetch does not.
  #programsOf(architecture) {
    if (!this.#programs.has(architecture)) {
      const loading = new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = `programs/${architecture}.js`;
        script.onerror = () => reject(new CoreError(`programs/${architecture}.js cannot be read`));
        globalThis.mmagoldExplorer.deliver = (name, programs) => this.#arrived.get(name)(programs);
        this.#arrived.set(architecture, resolve);
        document.head.append(script);
      });
      this.#programs.set(architecture, loading);
      loading.catch(() => this.#programs.delete(architecture));
    }
    return this.#programs.get(architecture);
  }

  #arrived = new Map();

  // A pasted unit is found like any other, and before them.
  #list({ name, formats, k }) {
    const known = this.entries.findIndex((entry) => entry.architecture.name === OWN && entry.name === name);
    if (known >= 0) this.entries.splice(known, 1);
    const architecture = { name: OWN, title: "your unit", words: [OWN] };
    this.entries.unshift({
      name,
      formats,
      k,
      architecture,
      words: [],
      machine: [],
      shapes: [],
      evidence: [],
    });
  }

  // Takes a document of `mmagold export --format program`; returns the names of its units.
  paste(text) {
    let document;
    try {
      document = JSON.parse(text);
    } catch (error) {
      const hint = /^\s*[\w-]+:/.test(text)
        ? 'this is YAML; "mmagold export my_unit.yaml --format program" writes the JSON that this page reads'
        : `this is no JSON: ${error.message}`;
      throw new CoreError(hint);
    }
    if (document?.mmagold_program !== 1 || !Array.isArray(document.units)) {
      throw new CoreError(
        'this is no compiled program; "mmagold export my_unit.yaml --format program" writes one',
      );
    }
    return document.units.map((spec) => {
      const { name } = spec;
      new Unit(this.core, spec, document.formats).free(); // before it replaces one of this name
      this.own.set(name, { spec: { ...spec, architecture: OWN }, formats: document.formats });
      this.#units.delete(`${OWN}:${name}`);
      this.#list(spec);
      return name;
    });
  }
}

// As golden/catalog/resolver.py has it: a word means the architecture, or types, or is part of a name.
function fits({ architecture, words, name, machine, formats }, word) {
  const plain = plainWord(word);
  if (architecture.words.includes(plain) || words.includes(plain)) return true;
  const part = plainName(word);
  return (
    [name, ...machine].some((one) => plainName(one).includes(part)) || Object.values(formats).includes(part)
  );
}

const plainWord = (word) => word.toLowerCase().replace(/[\s_-]/g, "");
const plainName = (name) => name.toLowerCase().replace(/(?<=\d)x(?=\d)/g, "");
