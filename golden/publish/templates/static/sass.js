/* The list of scalar PTX (golden/publish/sass_page.py): filters by words, group and operands, compares two targets.
   What is chosen stands in the address behind "#", so that a view can be linked to. */
"use strict";
(() => {
  const STEP = 200;
  const ALL = "all targets", NONE = "no other";

  function element(tag, properties = {}, children = []) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  /* Machine code, which may be broken behind each "+". */
  function codeCell(text, className = "") {
    const parts = text.split("+").flatMap((part, i) => i ? ["+", document.createElement("wbr"), part] : [part]);
    return element("td", { className }, [element("code", {}, parts)]);
  }

  function choice(label, values, names = values) {
    const select = element("select", {}, values.map((value, i) => element("option", { value, textContent: names[i] })));
    return [element("label", {}, [`${label} `, select]), select];
  }

  /* "sm_75 to sm_89, sm_110a", as `mmagold sass` says it. */
  function targetsText(places, targets) {
    if (places.length === targets.length && places.length > 1) return "all";
    const runs = [];
    for (const place of places) {
      const last = runs[runs.length - 1];
      if (last && last[last.length - 1] === place - 1) last.push(place);
      else runs.push([place]);
    }
    const named = (run) => run.length > 2
      ? `${targets[run[0]]} to ${targets[run[run.length - 1]]}`
      : run.map((place) => targets[place]).join(", ");
    return runs.map(named).join(", ");
  }

  function byText(numbers) {
    const found = new Map();
    numbers.forEach((number, place) => found.set(number, [...(found.get(number) || []), place]));
    return found;
  }

  function start() {
    const root = document.getElementById("mg-sass");
    const source = document.getElementById("mg-sass-data");
    if (!root || !source) return;
    const { targets, groups, texts, operands, rows, ptxas } = JSON.parse(source.textContent);
    const words = element("input", { type: "search", placeholder: "mad.lo, or IMAD.WIDE", size: 24 });
    const [groupLabel, group] = choice("Group", ["", ...groups.keys()].map(String), ["all", ...groups]);
    const [kindLabel, kind] = choice("Operands", ["r", "*"], ["registers", "every kind"]);
    const [oneLabel, one] = choice("Target", ["", ...targets], [ALL, ...targets]);
    const [twoLabel, two] = choice("against", ["", ...targets], [NONE, ...targets]);
    const differing = element("input", { type: "checkbox" });
    const count = element("p", { className: "mg-sass-count" });
    const head = element("thead"), body = element("tbody");
    const more = element("button", { type: "button", textContent: "Show more" });
    const controls = { q: words, g: group, k: kind, a: one, b: two, d: differing };
    let shown = STEP;

    function matches([name, number, kinds, numbers]) {
      if (group.value !== "" && number !== Number(group.value)) return false;
      if (kind.value === "r" && /[^r]/.test(kinds)) return false;
      const places = [one.value, two.value].filter((value) => value).map((value) => targets.indexOf(value));
      const seen = (places.length ? places : targets.map((_, place) => place)).map((place) => numbers[place]);
      if (differing.checked && new Set(seen).size < 2) return false;
      const text = [name, ...seen.map((each) => texts[each])].join(" ").toLowerCase();
      return words.value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
    }

    function cells([name, , kinds, numbers]) {
      const first = element("td", {}, [element("code", { textContent: name })]);
      const second = element("td", { textContent: operands[kinds] });
      if (!one.value) {
        return [...byText(numbers)].map(([number, places], i) => {
          const made = [codeCell(texts[number]), element("td", { textContent: targetsText(places, targets) })];
          return i ? element("tr", { className: "mg-sass-same" }, [element("td"), element("td"), ...made])
            : element("tr", {}, [first, second, ...made]);
        });
      }
      const [a, b] = [one.value, two.value].map((value) => numbers[targets.indexOf(value)]);
      const made = [codeCell(texts[a])];
      if (two.value) made.push(codeCell(texts[b], a === b ? "" : "mg-sass-other"));
      return [element("tr", {}, [first, second, ...made])];
    }

    function show() {
      const found = rows.filter(matches);
      const columns = one.value ? [one.value, ...(two.value ? [two.value] : [])] : ["SASS", "targets"];
      head.replaceChildren(element("tr", {}, ["PTX", "operands", ...columns].map((textContent) => element("th", { textContent }))));
      body.replaceChildren(...found.slice(0, shown).flatMap(cells));
      count.textContent = `${found.length} of ${rows.length} rows, ptxas ${ptxas.join(", ")}`;
      more.hidden = found.length <= shown;
      two.disabled = !one.value;
    }

    function write() {
      shown = STEP;
      const kept = new URLSearchParams();
      for (const [key, control] of Object.entries(controls)) {
        const value = control.type === "checkbox" ? (control.checked ? "1" : "") : control.value;
        if (value && !(key === "k" && value === "r")) kept.set(key, value);
      }
      history.replaceState(null, "", `#${kept}`);
      show();
    }

    function read() {
      const kept = new URLSearchParams(location.hash.slice(1));
      for (const [key, control] of Object.entries(controls)) {
        const value = kept.get(key) || (key === "k" ? "r" : "");
        if (control.type === "checkbox") control.checked = value === "1";
        else if (control === words || [...control.options].some((option) => option.value === value)) control.value = value;
      }
      show();
    }

    for (const control of Object.values(controls)) control.addEventListener("input", write);
    more.addEventListener("click", () => { shown += STEP; show(); });
    const field = element("label", {}, ["Find ", words]);
    const only = element("label", {}, [differing, " only what differs"]);
    const table = element("div", { className: "mg-sass-table" }, [element("table", { className: "docutils" }, [head, body])]);
    root.replaceChildren(element("form", { onsubmit: () => false }, [field, groupLabel, kindLabel, oneLabel, twoLabel, only]), count, table, more);
    addEventListener("hashchange", read);
    read();
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
