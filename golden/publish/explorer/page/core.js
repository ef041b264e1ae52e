// The C core of mmagold in WebAssembly: programs as data become its structs, dot products become records.
//
// Nothing here knows the structs: their members come from golden/model/program_text.py, their offsets from
// C's rules of alignment, and the core itself says whether the sizes came out right.

const SCALARS = { i32: 4, i64: 8, u64: 8 };
const POINTER = 4;
const TEXT = new TextDecoder();

// What the core and its caller can say to a reader.
export class CoreError extends Error {}

export class Core {
  // words: what golden/publish/explorer/build.py calls core_words.
  static async load(bytes, words) {
    const { instance } = await WebAssembly.instantiate(bytes, {});
    return new Core(instance.exports, words);
  }

  constructor(exports, words) {
    this.exports = exports;
    this.words = words;
    this.structs = {};
    for (const [name, members] of Object.entries(words.structs)) this.structs[name] = this.#layOut(members);
    this.#checkSizes();
    this.number = this.#numberFields();
  }

  get view() {
    return new DataView(this.exports.memory.buffer); // a new one each time: memory that grows is another
  }

  get digest() {
    return this.#text(this.exports.mg_digest());
  }

  // Members with their offsets, as C lays them out.
  #layOut(members) {
    let size = 0;
    let alignment = 1;
    const found = {};
    for (const [name, type, count] of members) {
      const one = this.#sizeOf(type);
      size = Math.ceil(size / one.alignment) * one.alignment;
      found[name] = { offset: size, type, count, size: one.size };
      size += one.size * count;
      alignment = Math.max(alignment, one.alignment);
    }
    return { size: Math.ceil(size / alignment) * alignment, alignment, members: found };
  }

  #sizeOf(type) {
    if (type.endsWith("*")) return { size: POINTER, alignment: POINTER };
    if (type in SCALARS) return { size: SCALARS[type], alignment: SCALARS[type] };
    if (!(type in this.structs)) this.structs[type] = this.#layOut(this.words.structs[type]);
    return this.structs[type];
  }

  #checkSizes() {
    const names = Object.keys(this.words.structs).slice(0, 5);
    const at = this.allocate(8 * names.length);
    this.exports.mg_struct_sizes(at);
    names.forEach((name, i) => {
      const spec = Number(this.view.getBigInt64(at + 8 * i, true));
      if (spec !== this.structs[name].size) {
        throw new CoreError(
          `the core holds ${name} in ${spec} bytes, this page in ${this.structs[name].size}`,
        );
      }
    });
    this.free(at);
  }

  // The fields of an observed number: {name: {offset, bytes, signed}}, and its size.
  #numberFields() {
    const most = 32;
    const at = this.allocate(16 * most + 8);
    const count = this.exports.mg_number_fields(at, most, at + 16 * most);
    const view = this.view;
    const fields = {};
    for (let i = 0; i < count; i++) {
      const [name, offset, bytes, signed] = [0, 4, 8, 12].map((o) => view.getInt32(at + 16 * i + o, true));
      fields[this.#text(name)] = { offset, bytes, signed };
    }
    const size = Number(view.getBigInt64(at + 16 * most, true));
    this.free(at);
    return { size, fields };
  }

  #text(at) {
    const bytes = new Uint8Array(this.exports.memory.buffer);
    return TEXT.decode(bytes.slice(at, bytes.indexOf(0, at)));
  }

  allocate(bytes) {
    const at = this.exports.malloc(Math.max(bytes, 1));
    if (!at) throw new CoreError("the core ran out of memory");
    new Uint8Array(this.exports.memory.buffer, at, bytes).fill(0);
    return at;
  }

  free(at) {
    this.exports.free(at);
  }

  // Writes the members of a struct; lists behind pointers get memory of their own, noted in `owned`.
  write(type, at, values, formats, owned) {
    const { members } = this.structs[type];
    for (const [name, value] of Object.entries(values)) {
      const member = members[name];
      if (!member) throw new CoreError(`${type} has no member '${name}': the program is of another version`);
      if (member.type.endsWith("*")) {
        const list = this.#list(member.type.slice(0, -1), value, formats, owned); // may move the view
        this.view.setUint32(at + member.offset, list, true);
        continue;
      }
      const items = member.count > 1 ? value : [value];
      if (items.length > member.count)
        throw new CoreError(`'${name}' has ${items.length} values, expected ${member.count}`);
      items.forEach((item, i) =>
        this.#item(member.type, at + member.offset + i * member.size, item, formats, owned),
      );
    }
  }

  #item(type, at, value, formats, owned) {
    if (type === "i32") this.view.setInt32(at, value, true);
    else if (type === "u64" || type === "i64")
      this.view.setBigUint64(at, BigInt.asUintN(64, BigInt(value)), true);
    else this.write(type, at, typeof value === "string" ? named(formats, value) : value, formats, owned);
  }

  #list(type, values, formats, owned) {
    const { size } = this.#sizeOf(type);
    const at = this.allocate(size * values.length);
    owned.push(at);
    values.forEach((value, i) => this.#item(type, at + i * size, value, formats, owned));
    return at;
  }

  // `count` observed numbers from an address.
  numbers(at, count) {
    const view = this.view;
    const { size, fields } = this.number;
    return Array.from({ length: count }, (_, i) => {
      const one = {};
      for (const [name, field] of Object.entries(fields))
        one[name] = readField(view, at + i * size + field.offset, field);
      return one;
    });
  }
}

function named(formats, name) {
  if (!Object.hasOwn(formats, name))
    throw new CoreError(`the program names the format '${name}' and does not say what it is`);
  return formats[name];
}

// A field of a number; significand and payload are BigInts.
function readField(view, at, { bytes, signed }) {
  switch (bytes) {
    case 16:
      return view.getBigUint64(at, true) | (view.getBigUint64(at + 8, true) << 64n);
    case 8:
      return signed ? view.getBigInt64(at, true) : view.getBigUint64(at, true);
    case 4:
      return signed ? view.getInt32(at, true) : view.getUint32(at, true);
    default:
      return view.getUint8(at);
  }
}

// A unit of a document of programs, loaded into the core.
export class Unit {
  #owned = [];

  constructor(core, spec, formats) {
    this.core = core;
    this.spec = spec;
    this.formats = formats;
    check(spec);
    this.at = core.allocate(core.structs.mg_program.size);
    this.#owned.push(this.at);
    this.program = spec.program;
    core.write("mg_program", this.at, spec.program, formats, this.#owned);
    this.layout = this.#recordLayout();
  }

  get name() {
    return `${this.spec.architecture}:${this.spec.name}`;
  }

  // The format of an operand: the members of mg_format, and its name.
  format(operand) {
    const name = this.spec.formats[operand];
    return { name, ...ZERO_FORMAT, ...named(this.formats, name) };
  }

  // The operands of a dot product: {name: how many codes}.
  get sizes() {
    const { spec, program } = this;
    const sizes = { a: program.k, b: spec.k, c: 1 };
    for (const name of spec.absent) delete sizes[name];
    if (spec.sparsity) sizes.metadata = spec.k / spec.sparsity.chunk;
    if (spec.scale_block) sizes.scale_a = sizes.scale_b = spec.k / spec.scale_block;
    return sizes;
  }

  free() {
    this.#owned.splice(0).forEach((at) => this.core.free(at));
  }

  #recordLayout() {
    const { core } = this;
    const count = core.exports.mg_observe_layout(this.at, 0, 0);
    if (count < 0) throw new CoreError("the core ran out of memory");
    const at = core.allocate(20 * count);
    core.exports.mg_observe_layout(this.at, at, count);
    const view = core.view;
    const layout = Array.from({ length: count }, (_, i) => {
      const [operation, step, moment, place, index] = [0, 4, 8, 12, 16].map((o) =>
        view.getInt32(at + 20 * i + o, true),
      );
      return {
        operation,
        step,
        moment: core.words.moments[moment],
        register: core.words.registers[place],
        index,
      };
    });
    core.free(at);
    return layout;
  }

  // d of one dot product, its records, and the status flags that it raises (null where the unit has none).
  observe(operands) {
    return this.#call([operands], (call, count) => {
      const records = this.core.allocate(this.core.number.size * count);
      const status = this.core.exports.mg_observe(this.at, call, records, count);
      const numbers = status ? [] : this.core.numbers(records, count);
      this.core.free(records);
      return [status, numbers];
    });
  }

  // d of each of many dot products.
  run(many) {
    return this.#call(many, (call) => [this.core.exports.mg_run(this.at, call), null]).d;
  }

  #call(many, execute) {
    const { core } = this;
    const owned = [];
    const place = (name, size, storage) => {
      const row = (size * storage) / 8;
      const at = core.allocate(row * many.length);
      owned.push(at);
      many.forEach((operands, i) => {
        if (operands) writeCodes(core.view, at + i * row, operands[name] ?? zeros(size), storage);
      });
      return { data: at, batch_stride: [row], row: storage / 8, column: storage / 8 };
    };
    const sizes = { b: this.spec.k, c: 1, ...this.sizes }; // what a unit does not have is zero
    const call = { batch_dims: 1, m: 1, n: 1, threads: 1, force_general: 1, batch_shape: [many.length] };
    for (const [name, size] of Object.entries(sizes)) {
      call[name === "metadata" ? "e" : name] = place(
        name,
        size,
        name === "metadata" ? 8 : this.format(name).storage,
      );
    }
    const { storage } = this.format("d");
    call.d = place("d", 1, storage);
    if (this.spec.status.length) call.flags = place("flags", 1, 8);
    const at = core.allocate(core.structs.mg_call.size);
    owned.push(at);
    this.#writeCall(at, call);
    const [status, numbers] = execute(at, this.layout.length);
    const view = core.view;
    const d = many.map((_, i) => readCode(view, call.d.data + (i * storage) / 8, storage));
    const raised = call.flags ? this.#flagsOf(view.getUint8(call.flags.data)) : null;
    owned.forEach((one) => core.free(one));
    if (status)
      throw new CoreError(
        status === -1 ? "the core ran out of memory" : "the core made other records than it said",
      );
    return { d: numbers ? d[0] : d, numbers, raised };
  }

  // The status flags of the unit that the core's mask names, in the unit's order.
  #flagsOf(mask) {
    return this.spec.status.filter((name) => (mask >> this.core.words.status.indexOf(name)) & 1);
  }

  #writeCall(at, call) {
    const { core } = this;
    const { data } = core.structs.mg_array.members;
    const arrays = Object.entries(call).filter(([, value]) => value.data !== undefined);
    for (const [name, array] of arrays) {
      const place = at + core.structs.mg_call.members[name].offset;
      const { data: address, ...strides } = array;
      core.view.setUint32(place + data.offset, address, true);
      core.write("mg_array", place, strides, {}, []);
    }
    core.write(
      "mg_call",
      at,
      Object.fromEntries(Object.entries(call).filter(([, v]) => v.data === undefined)),
      {},
      [],
    );
  }

  // Codes of a format as numbers.
  decode(operand, codes) {
    return decode(this.core, this.format(operand), codes);
  }
}

// Refuses a program that reads what is not there: the core trusts whoever compiled it.
function check({ program, operations, k, formats, status }) {
  const wrong = (what) => new CoreError(`the program is damaged: ${what}`);
  const within = (number, high) => Number.isInteger(number) && number >= 0 && number < high;
  if (!within(program?.k - 1, MOST_K) || !within(k - 1, MOST_K)) throw wrong(`k is ${program?.k}`);
  if (program.operations?.length !== operations?.length) throw wrong("its operations have no words");
  for (const name of ["a", "b", "c", "d"])
    if (formats?.[name] !== program[name]) throw wrong(`two formats of ${name}`);
  if (!Array.isArray(status)) throw wrong("it does not say which status flags there are");
  program.operations.forEach((operation, o) => {
    const { steps, k_index, step_count, k_count = 0, seed = 0, addends = [] } = operation;
    if (steps?.length !== step_count || steps.length !== operations[o].steps?.length)
      throw wrong(`steps of operation ${o}`);
    if (k_index?.length !== k_count || !k_index.every((one) => within(one, program.k)))
      throw wrong(`k of operation ${o}`);
    if (![seed, ...addends].every((one) => within(one, o + 2)))
      throw wrong(`operation ${o} adds a later result`);
  });
}

const MOST_K = 4096; // MG_MAX_K

const ZERO_FORMAT = {
  ...{ is_float: 0, exponent_bits: 0, fraction_bits: 0, bias: 0, specials: 0, is_signed: 0, has_zero: 0 },
  ...{ ignored_low: 0, min_exponent: 0, max_exponent: 0, sign_shift: 0, has_infinity: 0, has_nan: 0 },
  ...{ bits: 0, infinity: "0x0", largest: "0x0", nan: "0x0" },
};

export function decode(core, format, codes) {
  const { name, ...members } = format;
  const at = core.allocate(core.structs.mg_format.size);
  core.write("mg_format", at, members, {}, []);
  const words = core.allocate(8 * codes.length);
  const numbers = core.allocate(core.number.size * codes.length);
  writeCodes(core.view, words, codes, 64);
  core.exports.mg_decode_codes(at, words, BigInt(codes.length), numbers);
  const found = core.numbers(numbers, codes.length);
  [at, words, numbers].forEach((one) => core.free(one));
  return found;
}

const zeros = (count) => Array(count).fill(0n);

function writeCodes(view, at, codes, storage) {
  codes.forEach((code, i) => {
    const here = at + (i * storage) / 8;
    if (storage === 64) view.setBigUint64(here, code, true);
    else if (storage === 32) view.setUint32(here, Number(code), true);
    else if (storage === 16) view.setUint16(here, Number(code), true);
    else view.setUint8(here, Number(code));
  });
}

function readCode(view, at, storage) {
  if (storage === 64) return view.getBigUint64(at, true);
  if (storage === 32) return BigInt(view.getUint32(at, true));
  return BigInt(storage === 16 ? view.getUint16(at, true) : view.getUint8(at));
}
