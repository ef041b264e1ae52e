/* Makes the large tables handy. Comparisons (tables inside of an element of class mg-compared): cells that say the
   same share a letter and a colour, rows in which all agree are folded, and two architectures can be picked. Instructions of
   an architecture (first heading "Instructions", last "Evidence"): a filter, and the kinds of evidence as badges. Long names
   in cells may break behind their dots. */
"use strict";
(() => {
  const NONE = "-";
  const KINDS = ["captured", "published", "derived"];

  function make(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  }

  const heads = (table) => [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
  const rowsOf = (table) => [...table.querySelectorAll("tbody tr")];
  const boxOf = (table) => table.closest(".table-wrapper") ?? table;

  const sectionOf = (table) => table.closest("section") ?? boxOf(table);

  function labelled(text, control) {
    return make("label", {}, make("span", {}, text), control);
  }

  function options(select, pairs) {
    for (const [value, text] of pairs) select.append(make("option", { value }, text));
    return select;
  }

  /* Comparisons ---------------------------------------------------------------------------------------------- */

  /* What a cell says: its link's words, without the letter of the evidence. */
  const said = (cell) => (cell.querySelector("a") ?? cell).textContent.trim();

  /* Each word's place among those of a row, the most frequent first. */
  function classes(cells) {
    const counts = new Map();
    for (const cell of cells) if (said(cell) !== NONE) counts.set(said(cell), (counts.get(said(cell)) ?? 0) + 1);
    const order = [...counts].sort((x, y) => y[1] - x[1]).map(([text]) => text);
    return new Map(order.map((text, place) => [text, place]));
  }

  function mark(cells) {
    const found = classes(cells);
    for (const cell of cells) {
      cell.querySelector(".mg-class")?.remove();
      cell.removeAttribute("data-class");
      const place = found.get(said(cell));
      if (found.size < 2 || place === undefined) continue;
      cell.dataset.class = Math.min(place, 6);
      const letter = String.fromCharCode(97 + place);
      (cell.querySelector("p") ?? cell).prepend(make("span", { class: "mg-class", title: `value ${letter} of this row` }, letter));
    }
    return found.size;
  }

  function comparison(table) {
    table.classList.add("mg-compare");
    const fold = make("button", { type: "button", class: "mg-fold", onclick: () => toggle() });
    boxOf(table).after(fold);
    let open = false, picked = [];
    const toggle = () => { open = !open; show(); };
    const show = () => {
      const names = heads(table);
      const chosen = picked.length ? names.map((name) => picked.includes(name)) : names.map(() => true);
      const lacking = picked.some((name) => !names.includes(name));
      let same = 0;
      for (const row of [table.querySelector("thead tr"), ...rowsOf(table)]) {
        const cells = [...row.cells];
        cells.forEach((cell, i) => { cell.hidden = i > 0 && !chosen[i]; });
        if (row.parentElement.tagName === "THEAD") continue;
        const agree = mark(cells.filter((_, i) => i > 0 && chosen[i])) < 2;
        same += agree;
        row.hidden = agree && !open;
      }
      boxOf(table).hidden = lacking;
      fold.hidden = lacking || !same;
      fold.setAttribute("aria-expanded", String(open));
      fold.textContent = `${open ? "Fold" : "Show"} ${same} row${same === 1 ? "" : "s"} in which all agree`;
    };
    show();
    return { names: heads(table).slice(1), pick: (names) => { picked = names; show(); } };
  }

  function comparisons(tables) {
    if (!tables.length) return;
    const shown = tables.map(comparison);
    const names = [...new Set(shown.flatMap((one) => one.names))];
    const [first, second] = ["any", "any"].map((all) =>
      options(make("select", {}), [["", all], ...names.map((name) => [name, name])]));
    const given = new URLSearchParams(location.search);
    const selects = { first, second };
    for (const [key, select] of Object.entries(selects)) if (names.includes(given.get(key))) select.value = given.get(key);
    const update = () => {
      for (const [key, select] of Object.entries(selects)) select.value ? given.set(key, select.value) : given.delete(key);
      history.replaceState(null, "", `${location.pathname}${`?${given}`.replace(/\?$/, "")}${location.hash}`);
      const pair = [first.value, second.value].filter(Boolean);
      for (const one of shown) one.pick(pair.length === 2 && pair[0] !== pair[1] ? pair : []);
    };
    for (const select of [first, second]) select.addEventListener("change", update);
    const swatch = make("span", { class: "mg-class" }, "b");
    const legend = make("p", { class: "mg-legend" }, "Cells of a row with the same letter and colour say the same, ", "a most often; ",
      swatch, " and further letters say something else.");
    sectionOf(tables[0]).before(make("div", { class: "mg-tools", role: "group", "aria-label": "Two architectures" },
      labelled("Architecture", first), labelled("against", second)), legend);
    if (first.value || second.value) update();
  }

  /* Instructions of an architecture -------------------------------------------------------------------------- */

  function badges(table) {
    for (const strong of table.querySelectorAll("td:last-child strong"))
      if (KINDS.includes(strong.textContent)) strong.classList.add("mg-badge", `mg-${strong.textContent}`);
  }

  function instructions(tables) {
    if (!tables.length) return;
    tables.forEach(badges);
    const search = make("input", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: "f16 wgmma" });
    const kind = options(make("select", {}), [["", "any"], ...KINDS.map((one) => [one, one])]);
    const count = make("span", { role: "status" });
    const update = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0, total = 0;
      for (const row of tables.flatMap(rowsOf)) {
        const text = row.textContent.toLowerCase(), evidence = row.lastElementChild.textContent;
        row.hidden = !(words.every((word) => text.includes(word)) && evidence.includes(kind.value));
        shown += !row.hidden;
        total++;
      }
      for (const table of tables) boxOf(table).hidden = rowsOf(table).every((row) => row.hidden);
      count.textContent = `${shown} of ${total} groups`;
    };
    search.addEventListener("input", update);
    kind.addEventListener("change", update);
    sectionOf(tables[0]).before(make("div", { class: "mg-tools", role: "search", "aria-label": "Filter of the tables" },
      labelled("Filter", search), labelled("Evidence", kind), count));
    update();
  }

  /* Long names ------------------------------------------------------------------------------------------------ */

  /* Lets names of instructions break behind their own punctuation: <wbr> is no character, so that a copy is the name. */
  function breakable(element) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const text of texts) {
      const parts = text.data.split(/(?<=[.:_/])(?=[^\s.:_/])/);
      if (parts.length > 2) text.replaceWith(...parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part])));
    }
  }

  function start() {
    document.querySelectorAll("article td code, article h1").forEach(breakable);
    const tables = [...document.querySelectorAll("article table.docutils")];
    comparisons(tables.filter((one) => one.closest(".mg-compared")));
    instructions(tables.filter((one) => heads(one)[0] === "Instructions" && heads(one).at(-1) === "Evidence"));
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
