/* Highlights one lane in all fragment pictures of the page: hover, tap (a second tap releases), arrow keys, Escape. */
"use strict";
(() => {
  const pictures = () => [...document.querySelectorAll("svg.mg-picture")].filter((svg) => svg.querySelector(".mg-fragment"));
  let pinned = null;

  function show(lane) {
    for (const svg of pictures()) {
      for (const old of svg.querySelectorAll("[data-lane].mg-on")) old.classList.remove("mg-on");
      const mine = lane === null ? null : svg.querySelector(`[data-lane="${lane}"]`);
      if (mine) mine.classList.add("mg-on");
      const readout = svg.querySelector(".mg-readout");
      if (readout) readout.textContent = mine ? `lane ${lane}` : " ";
    }
  }

  function pin(lane) {
    pinned = lane;
    show(lane);
  }

  function laneOf(event) {
    const cell = event.target instanceof Element ? event.target.closest(".mg-fragment [data-lane]") : null;
    return cell ? cell.dataset.lane : null;
  }

  function keyed(event, svg) {
    const lanes = [...svg.querySelectorAll("[data-lane]")].map((cell) => Number(cell.dataset.lane)).sort((a, b) => a - b);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") pin(null);
    else if (step && lanes.length) {
      const place = pinned === null ? (step > 0 ? -1 : 0) : lanes.indexOf(Number(pinned));
      pin(String(lanes[(place + step + lanes.length) % lanes.length]));
      event.preventDefault();
    }
  }

  function listen(svg) {
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("keydown", (event) => keyed(event, svg));
  }

  function start() {
    pictures().forEach(listen);
    document.addEventListener("mg-picture", (event) => {
      event.target.querySelectorAll("svg.mg-picture").forEach(listen);
      show(pinned);
    });
    document.addEventListener("pointerover", (event) => {
      const lane = laneOf(event);
      if (event.pointerType !== "touch" && pinned === null) show(lane);
    });
    document.addEventListener("click", (event) => {
      const lane = laneOf(event);
      if (lane !== null) pin(lane === pinned ? null : lane);
    });
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
