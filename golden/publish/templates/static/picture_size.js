/* A picture fits a narrow page; a button below it shows it in its full size, in a box that scrolls. */
"use strict";
(() => {
  const FULL = "mg-full";

  function button(figure) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "mg-size";
    made.addEventListener("click", () => { figure.classList.toggle(FULL); update(figure); });
    (figure.querySelector("figcaption") ?? figure).append(made);
    return made;
  }

  function update(figure) {
    const svg = figure.querySelector("svg.mg-picture"), shown = figure.querySelector(".mg-size");
    if (!svg || svg.viewBox.baseVal.width <= figure.clientWidth + 1) {
      shown?.remove();
      figure.classList.remove(FULL);
      return;
    }
    (shown ?? button(figure)).textContent = figure.classList.contains(FULL) ? "Fit the page" : "Full size";
  }

  function start() {
    const sizes = new ResizeObserver((seen) => seen.forEach((one) => update(one.target)));
    for (const figure of document.querySelectorAll("article .mg-figure")) sizes.observe(figure);
    document.addEventListener("mg-picture", (event) => {
      const figure = event.target.closest(".mg-figure");
      if (figure) update(figure);
    });
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
