/* Finds instructions, cards, formats and guides by the words that people use, in the index that golden/publish/finder.py
   writes: above the results of the search page, and under every <input data-mg-finder> while one types. */
"use strict";
(() => {
  const here = document.currentScript.src; // .../_static/finder.js?v=...
  const root = here.replace(/_static\/finder\.js.*$/, "");
  const SHOWN = 12;

  /* Names and words without regard to case and to how they are spelt, as golden/catalog/resolver.py has them. */
  const plainWord = (word) => word.toLowerCase().replace(/[\s_-]/g, "");
  const plainName = (name) =>
    name.toLowerCase().replace(/(m\d+n)\d+(k\d+)/g, "$1*$2").replace(/(?<=\d)x(?=\d)/g, "");

  function prepared(index) {
    const cards = new Map(Object.entries(index.chips)), types = new Set(index.types), brands = new Set(index.brands);
    const keyOf = (name) => key(plainName(name), types);
    const pages = index.pages.map(([path, title, arch, types, names, family], order) => ({
      path, title, arch, order, family, types: new Map(Object.entries(types)), names: names.map(plainName), label: names[0],
      keys: new Set(names.map(keyOf)),
    }));
    const writings = index.writings.map(([pattern, name]) => [new RegExp(`^(?:${pattern})$`, "i"), name]);
    const card = (word) => cards.get(plainWord(word)) ?? cards.get(plainWord(unbranded(word, brands)));
    return { card, pages, keyOf, writings, formats: new Map(Object.entries(index.formats)), others: index.others };
  }

  /* What a name says: only the order of types and layouts counts. */
  function key(name, types) {
    const [head, ...rest] = name.split(".");
    const ordered = (word) => types.has(word) || word === "row" || word === "col";
    return [head, ...rest.filter(ordered), "", ...rest.filter((word) => !ordered(word)).sort()].join(".");
  }

  /* GeForce RTX 4090 is 4090. */
  function unbranded(word, brands) {
    const parts = word.trim().split(/[\s_-]+/);
    while (parts.length > 1 && brands.has(parts[0].toLowerCase()) && parts.slice(1).some((part) => /\d/.test(part))) parts.shift();
    return parts.join(" ");
  }

  /* What compilers and libraries mean by a word: a test of plain names, null for a word that is none of theirs. */
  function written(word, { writings, keyOf }) {
    const meant = writings.flatMap(([pattern, name]) => {
      if (!pattern.test(word)) return [];
      const said = word.replace(pattern, name).toLowerCase();
      return [name.includes(".") ? said.replace(/\.\./g, ".").replace(/\.$/, "") : said.replace(/\./g, "_")];
    });
    if (!meant.length) return null;
    const tests = meant.map((name) => {
      if (!name.includes("*")) return (page) => page.keys.has(keyOf(name));
      const text = name.split("*").map((part) => plainName(part).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*");
      return (page) => page.names.some((one) => new RegExp(`^${text}$`).test(one));
    });
    return (page) => tests.some((test) => test(page));
  }

  /* The words of a query; "rtx 5090" is one where all of it means a card, b200:nvfp4 are two. */
  function split(query, card) {
    if (card(query)) return [query];
    return query.trim().split(/\s+/).flatMap((word) => {
      const colon = word.search(/(?<!:):(?!:)/);
      const head = word.slice(0, Math.max(colon, 0));
      return colon > 0 && card(head) ? [head, word.slice(colon + 1)].filter(Boolean) : [word];
    });
  }

  /* How well a page of instructions fits: 0 where some word does not. */
  function fit(page, words) {
    let score = 0;
    for (const { chip, plain, part, key, written } of words) {
      if (chip?.[0].includes(page.arch)) {
        if (chip[1] && !chip[1].includes(page.family)) return 0;
        score += 50;
      } else if (page.names.includes(part) || page.keys.has(key) || written?.(page)) score += 100;
      else if (page.types.has(plain)) score += 30 + 20 * page.types.get(plain);
      else if (page.names.some((name) => name.split(/[.:_]+/).includes(part))) score += 30;
      else if (page.names.some((name) => name.startsWith(part))) score += 40;
      else if (page.names.some((name) => name.includes(part))) score += 10;
      else return 0;
    }
    return score;
  }

  const FILLERS = new Set("a an and are can do does for from how i in is it my of on or the to what when which why with".split(" "));
  const plainWords = (text) => text.toLowerCase().split(/[^a-z0-9_.+-]+/).filter((word) => word && !FILLERS.has(word));

  /* Guides and chapters: the query is their address or phrase, or each of its words begins one of the phrase; the shorter that the
     better. Words for types and cards may be left over. */
  function titled(path, phrase, query, named) {
    const given = plainWords(query), words = plainWords(phrase);
    if (!given.length) return 0;
    if (given.join(" ") === words.join(" ") || path === `${given.join("-")}.html`) return path.includes("#") ? 28 : 200;
    const met = given.filter((word) => word.length > 1 && words.some((one) => one.startsWith(word)));
    if (!met.length || !given.every((word) => met.includes(word) || named(word))) return 0;
    const score = 5 + (80 * met.join("").length * met.length) / (words.join("").length * given.length);
    return path.includes("#") ? Math.min(0.5 * score, 27) : Math.min(score, 85);
  }

  function search(index, query) {
    const { card, pages, formats, others } = index;
    const found = [], plain = plainWord(query);
    if (!plain) return found;
    for (const [place, name] of (card(query)?.[0] ?? []).entries()) {
      found.push([1000 - place, -2, `architectures/${name}.html`, name, "architecture"]);
    }
    const format = formats.get(plain);
    if (format !== undefined) found.push([900, -1, `formats/${format}.html`, format, "number format"]);
    const words = split(query, card).map((word) => ({
      chip: card(word), plain: plainWord(word), part: plainName(word), key: index.keyOf(word), written: written(word, index),
    }));
    for (const page of pages) {
      const score = fit(page, words);
      if (score) found.push([score, page.order, page.path, page.title, page.arch]);
    }
    const types = new Set(pages.flatMap((page) => [...page.types.keys()]));
    const named = (word) => card(word) !== undefined || types.has(plainWord(word));
    others.forEach(([path, title, phrase, where], order) => {
      const score = titled(path, phrase, query, named);
      if (score) found.push([score, order, path, title, where ?? ""]);
    });
    const best = new Map();
    for (const one of found.sort((a, b) => b[0] - a[0] || a[1] - b[1])) if (!best.has(one[2])) best.set(one[2], one);
    return [...best.values()];
  }

  let waiting = null;
  function load() {
    waiting ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${root}_static/finder_index.js`;
      script.onload = () => resolve(prepared(window.MMAGOLD_FINDER));
      script.onerror = reject;
      document.head.append(script);
    });
    return waiting;
  }

  function item([, , path, title, where]) {
    const entry = document.createElement("li"), link = document.createElement("a");
    link.href = root + path;
    link.textContent = title;
    entry.append(link);
    if (where) entry.append(Object.assign(document.createElement("span"), { textContent: ` ${where}` }));
    return entry;
  }

  function list(found) {
    const made = document.createElement("ul");
    made.className = "mg-finder-results";
    made.append(...found.slice(0, SHOWN).map(item));
    return made;
  }

  async function onSearchPage(results) {
    const query = new URLSearchParams(location.search).get("q") ?? "";
    const found = search(await load(), query);
    if (found.length === 0) return;
    const section = document.createElement("section");
    section.setAttribute("aria-label", "Pages by name");
    section.append(list(found));
    results.before(section);
  }

  /* The search page that was opened without words would be blank: a field stands there. */
  function withoutWords(results) {
    const title = document.createElement("h1"), field = document.createElement("div"), input = document.createElement("input");
    title.textContent = "Search";
    field.className = "mg-finder";
    Object.assign(input, { type: "search", autocomplete: "off", placeholder: "h100 fp8, HMMA.16816.F32, nvfp4" });
    input.setAttribute("aria-label", "Find an instruction, a card or a page");
    input.setAttribute("data-mg-finder", "");
    field.append(input);
    results.before(title, field);
  }

  function onInput(input) {
    const output = document.createElement("div");
    output.setAttribute("role", "status");
    input.after(output);
    const update = async () => output.replaceChildren(...(input.value.trim() ? [list(search(await load(), input.value))] : []));
    input.addEventListener("input", update);
    input.addEventListener("keydown", (event) => {
      const first = output.querySelector("a");
      if (event.key === "Enter" && first) { location.href = first.href; event.preventDefault(); }
      if (event.key === "ArrowDown" && first) { first.focus(); event.preventDefault(); }
    });
    output.addEventListener("keydown", (event) => { // arrows go along the list, and back into the field
      const links = [...output.querySelectorAll("a")], place = links.indexOf(document.activeElement);
      const to = { ArrowDown: place + 1, ArrowUp: place - 1 }[event.key];
      if (to === undefined || place < 0) return;
      event.preventDefault();
      (to < 0 ? input : links[to] ?? links[place]).focus();
    });
    if (input.value) update();
  }

  function start() {
    const results = document.getElementById("search-results");
    if (results) (new URLSearchParams(location.search).get("q")?.trim() ? onSearchPage : withoutWords)(results);
    for (const input of document.querySelectorAll("input[data-mg-finder]")) onInput(input);
  }
  window.mmagoldFinder = { load, search }; // for the tests
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
