// The explorer: what is chosen, what follows from it, and the page that shows both.

import { Core, CoreError } from "./core.js";
import { firstDifference } from "./difference.js";
import { fill, find, h } from "./dom.js";
import { errorsByBits, gaussian, ownBits, plot, quantile, randomOperands } from "./errors.js";
import { Finder } from "./finder.js";
import { Library, OWN } from "./library.js";
import { fromHash, toHash } from "./link.js";
import { OperandView, atRest, carried, ofPreset } from "./operands.js";
import { stepList } from "./steps.js";
import { trace } from "./trace.js";
import { encode, parse, step } from "./values.js";

const FIRST = "hopper:mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
const OPERANDS = { a: ["1", "0x1.8p-13"], b: ["1", "0x1.8p-13"], c: "1" }; // some bits are cut
const state = { first: null, second: null, operands: {}, slot: "first", pasted: null, preset: "", seed: 1 };
let library, finder, view;

// From a choice to the page ------------------------------------------------------------------------------

async function choose(slot, name) {
  const [architecture, ...rest] = name.split(":");
  const unit = await library.unit(architecture, rest.join(":"));
  const before = state.first;
  state[slot] = unit;
  if (slot === "first")
    state.operands = before
      ? carried(before, state.operands, unit)
      : (ofPreset(unit, OPERANDS) ?? atRest(unit));
}

function show() {
  const { first, operands } = state;
  find("errors-plot").replaceChildren();
  find("errors-said").textContent = "";
  try {
    view.show(first, operands);
    showPresets();
    showChoice();
    showResults();
    showOwnBits();
  } catch (error) {
    for (const id of ["results", "parting", "traces"]) fill(id); // no old result may look like a new one
    throw error;
  }
  writeLink();
}

function showChoice() {
  fill("first-name", h("code", {}, state.first.name), evidence(state.first));
  fill("second-name", state.second ? [h("code", {}, state.second.name), evidence(state.second)] : "none");
  for (const id of ["remove", "swap"]) find(id).hidden = !state.second;
  for (const slot of ["first", "second"])
    find(`choose-${slot}`).setAttribute("aria-pressed", String(state.slot === slot && find("finder").open));
  document.title = `${state.first.spec.name} \u2014 mmagold explorer`;
}

const architectureOf = ({ spec }) =>
  library.index.find(({ name }) => name === spec.architecture)?.title ?? "A unit of your own";

// Why anybody should believe it; of a pasted unit nobody says.
function evidence({ spec }) {
  const kinds = library.entry(spec.architecture, spec.name)?.evidence ?? [];
  return kinds.length ? h("span", { class: "small" }, ` ${kinds.join(" or ")}`) : null;
}

function showResults() {
  const units = [state.first, state.second].filter(Boolean);
  const given = units.map((unit) =>
    unit === state.first ? state.operands : carried(state.first, state.operands, unit),
  );
  const traced = units.map((unit, i) => trace(unit, given[i]));
  const parts = units.length > 1 ? difference(units, given) : null;
  fill("results", ...units.map((unit, i) => resultCard(unit, traced[i])));
  fill("parting", units.length > 1 ? parting(units, traced, parts) : null);
  fill(
    "traces",
    ...units.map((unit, i) =>
      h(
        "section",
        { class: "trace", "aria-label": `Steps of ${unit.name}` },
        h("h3", { class: units.length > 1 ? null : "unseen" }, h("code", {}, unit.name)),
        stepList(unit, traced[i], parts),
      ),
    ),
  );
  find("said").textContent = traced
    .map(({ d, d_value }, i) => `${units[i].spec.architecture}: d = ${d}, ${d_value}`)
    .join("; ");
}

function difference(units, given) {
  return firstDifference(...units.map((unit, i) => ({ unit, numbers: unit.observe(given[i]).numbers })));
}

// Whether two units give the same bits or, in different formats, the same value.
function parting(units, traced, parts) {
  const [x, y] = units.map((unit) => unit.spec.formats.d);
  const same = x === y ? traced[0].d === traced[1].d : traced[0].d_value === traced[1].d_value;
  const what = x === y ? "bits" : "values";
  const head = same ? `Both give the same ${what}.` : `They give different ${what}.`;
  if (!parts) {
    const why = same ? "No step differs as far as both run the same." : "Their steps are of different kinds.";
    return h("p", { class: same ? "note" : "note differs" }, `${head} ${why}`);
  }
  const { where, register, index, expected, actual } = parts;
  return h(
    "p",
    { class: same ? "note" : "note differs" },
    `${head} The first step where they differ is ${where}: ${register}[${index}] is `,
    h("code", {}, expected),
    " in the first and ",
    h("code", {}, actual),
    " in the second.",
  );
}

function resultCard(unit, { d, d_value, flags, exact, exact_value, error_ulp }) {
  const error =
    error_ulp === null ? "\u2014" : `${error_ulp > 0 ? "+" : ""}${Number(error_ulp.toPrecision(6))} ULP`;
  const pair = (term, ...value) => [h("dt", {}, term), h("dd", {}, ...value)];
  const known = exact === null ? "an operand is infinite or NaN" : exact_value;
  return h(
    "div",
    { class: "card" },
    h("h3", {}, state.second ? h("code", {}, unit.name) : architectureOf(unit)),
    h(
      "dl",
      {},
      ...pair("d", h("code", { class: "big" }, d), ` = ${d_value}`),
      ...(flags ? pair("flags", flags) : []),
      ...pair(
        "exact",
        known,
        exact && exact !== exact_value ? h("code", { class: "small" }, ` ${exact}`) : "",
      ),
      ...pair(
        "error",
        h("span", { class: error_ulp !== null && Math.abs(error_ulp) <= 0.5 ? "good" : "bad" }, error),
      ),
    ),
  );
}

const presetsOf = new WeakMap(); // by unit: [preset, operands], where it can hold them

function fittingPresets(unit) {
  if (!presetsOf.has(unit)) {
    const all = globalThis.mmagoldExplorer.presets.map((preset) => [preset, ofPreset(unit, preset)]);
    presetsOf.set(
      unit,
      all.filter(([, operands]) => operands),
    );
  }
  return presetsOf.get(unit);
}

function showPresets() {
  const fitting = fittingPresets(state.first).map(([preset]) => preset);
  fill(
    "preset",
    h("option", { value: "" }, "choose\u2026"),
    ...fitting.map(({ name }) => h("option", { value: name, selected: name === state.preset }, name)),
  );
  find("why").textContent = fitting.find(({ name }) => name === state.preset)?.why ?? "";
}

function showOwnBits() {
  const own = [...new Set(ownBits(state.first))];
  find("run-errors").disabled = !own.length || state.first.spec.integer;
  find("own-bits").textContent = own.length
    ? `This unit keeps F = ${own.join(" and ")}.`
    : "This unit has no alignment: no F to vary.";
}

// What people do -----------------------------------------------------------------------------------------

function changeOperands(operands, preset = "") {
  Object.assign(state, { operands, preset });
  guarded(show);
}

async function chosen(architecture, name) {
  await guarded(async () => {
    await choose(state.slot, `${architecture}:${name}`);
    find("finder").open = false;
    show();
    find(`choose-${state.slot}`).focus();
  });
}

function openFinder(slot) {
  state.slot = slot;
  find("finder").open = true;
  if (slot === "second" && !state.second) finder.propose(state.first.spec.formats);
  finder.show();
  showChoice();
  find("search").focus();
}

async function pasteUnit() {
  await guarded(async () => {
    const text = find("paste").value;
    const [name] = library.paste(text);
    state.pasted = JSON.parse(text);
    await choose(state.slot, `${OWN}:${name}`);
    find("paste-box").open = false;
    show();
  });
}

async function runErrors() {
  const button = find("run-errors");
  const said = find("errors-said");
  const unit = state.first;
  const draw = gaussian(state.seed);
  const rest = atRest(unit);
  const many = Array.from({ length: Number(find("samples").value) }, () => randomOperands(unit, draw, rest));
  button.disabled = true;
  try {
    const found = await errorsByBits(unit, many, (done, total) => {
      said.textContent = `${done} of ${total} widths`;
    });
    if (unit !== state.first) return; // somebody chose another meanwhile
    const own = [...new Set(ownBits(unit))];
    fill("errors-plot", plot(found, own, find("errors-plot").clientWidth));
    const rows = found.filter(({ bits }) => own.includes(bits)).map(quantilesText);
    said.textContent = [`${many.length} dot products of N(0, 1)`, ...rows].join("; ");
  } finally {
    button.disabled = false;
    if (unit !== state.first) showOwnBits();
  }
}

function quantilesText({ bits, errors }) {
  const [middle, most] = [0.5, 1].map((share) => quantile(errors, share).toPrecision(3));
  return `F = ${bits}: median ${middle}, largest ${most} ULP`;
}

// The link -----------------------------------------------------------------------------------------------

let lastHash = "";

async function writeLink() {
  const { first, second, operands, pasted } = state;
  const uses = [first, second].some((unit) => unit?.spec.architecture === OWN);
  const hash = await toHash({
    first: first.name,
    second: second?.name,
    operands,
    unit: uses ? pasted : null,
  });
  if (first !== state.first || operands !== state.operands || second !== state.second) return; // outdated
  lastHash = hash;
  history.replaceState(null, "", hash);
}

// Shows what the address asks for; where that is nothing, says so and shows what an address without it does.
async function openLink() {
  try {
    find("complaint").hidden = true;
    await readLink();
  } catch (error) {
    state.first = state.second = null;
    await choose("first", FIRST);
    show();
    complain(error);
  }
}

async function readLink() {
  const wanted = await fromHash(location.hash);
  if (wanted.unit) {
    library.paste(wanted.unit);
    state.pasted = JSON.parse(wanted.unit);
  }
  state.first = state.second = null;
  await choose("first", wanted.first ?? FIRST);
  if (wanted.second) await choose("second", wanted.second);
  if (Object.keys(wanted.operands).length) state.operands = filled(state.first, wanted.operands);
  show();
}

// The operands of a link for a unit: what it leaves out is at rest, what does not fit is dropped.
function filled(unit, given) {
  const operands = atRest(unit);
  for (const [name, codes] of Object.entries(operands)) {
    if (name !== "c" && !(name in given)) continue;
    const limit = name === "metadata" ? 4 : unit.format(name).bits;
    const zero = name === "metadata" || name.startsWith("scale") ? codes[0] : 0n;
    codes.forEach((_, i) => {
      const code = given[name]?.[i] ?? zero;
      const legal = name === "metadata" ? code in unit.spec.sparsity.nibbles : code >> BigInt(limit) === 0n;
      codes[i] = legal ? code : zero;
    });
  }
  return operands;
}

async function copyLink() {
  await writeLink();
  try {
    await navigator.clipboard.writeText(location.href);
    find("copied").textContent = "copied";
  } catch {
    find("copied").textContent = "the link is in the address bar";
  }
}

// Complaints go to the page, and so does anything else that goes wrong.
async function guarded(action) {
  try {
    find("complaint").hidden = true;
    await action();
  } catch (error) {
    complain(error);
    if (!(error instanceof CoreError)) throw error;
  }
}

function complain(error) {
  find("complaint").hidden = false;
  find("complaint").textContent =
    error instanceof CoreError ? error.message : `something went wrong: ${error.message}`;
}

function listen() {
  find("choose-first").addEventListener("click", () => openFinder("first"));
  find("choose-second").addEventListener("click", () => openFinder("second"));
  find("remove").addEventListener("click", () => {
    state.second = null;
    guarded(show);
  });
  find("swap").addEventListener("click", () => {
    if (!state.second) return;
    const operands = carried(state.first, state.operands, state.second);
    [state.first, state.second] = [state.second, state.first];
    changeOperands(operands);
  });
  find("preset").addEventListener("change", (event) => {
    const found = fittingPresets(state.first).find(([{ name }]) => name === event.target.value);
    if (found) changeOperands(found[1], found[0].name);
  });
  find("random").addEventListener("click", () =>
    changeOperands(randomOperands(state.first, gaussian(++state.seed), atRest(state.first))),
  );
  find("clear").addEventListener("click", () => changeOperands(atRest(state.first)));
  find("copy").addEventListener("click", copyLink);
  find("load-unit").addEventListener("click", pasteUnit);
  find("run-errors").addEventListener("click", () => guarded(runErrors));
  addEventListener("hashchange", () => {
    if (location.hash !== lastHash) guarded(openLink);
  });
}

function theme() {
  try {
    document.body.dataset.theme = localStorage.getItem("theme") ?? "auto"; // the site's own switch
  } catch {
    document.body.dataset.theme = "auto";
  }
}

async function start() {
  theme();
  const { core, words, index } = globalThis.mmagoldExplorer;
  const bytes = Uint8Array.from(atob(core), (letter) => letter.charCodeAt(0));
  library = new Library(await Core.load(bytes, words), index);
  const elements = Object.fromEntries(
    ["search", "architecture", "list", "count"].map((id) => [id, find(id)]),
  );
  finder = new Finder(library, { ...elements, a: find("type-a"), d: find("type-d") }, chosen);
  view = new OperandView(find("operand-table"), find("editor"), (operands) => changeOperands(operands));
  listen();
  await openLink();
  document.body.dataset.ready = "yes";
  performance.mark("ready"); // when the first result stands there
}

// For tests, and for those who ask the console.
globalThis.mmagoldExplorer.api = {
  trace,
  firstDifference,
  encode,
  parse,
  step,
  errorsByBits,
  state,
  library: () => library,
};
guarded(start);
