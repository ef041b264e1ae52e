/* For readers without a mouse: boxes that scroll take the focus, so that arrows move them, and the headings of the side bar say
   their level. The side bar shows the place of the page in it. */
"use strict";
(() => {
  const BOXES = "article pre, article .table-wrapper, article .mg-figure, article table:not(.docutils)";

  function focusable(box) {
    const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
    if (scrolls) box.setAttribute("tabindex", "0");
    else box.removeAttribute("tabindex");
  }

  function showPlace() {
    const here = [...document.querySelectorAll(".sidebar-tree .current")].pop();
    const box = here?.closest(".sidebar-scroll");
    if (!box) return;
    const { top, height } = box.getBoundingClientRect();
    box.scrollBy({ top: here.getBoundingClientRect().top - top - height / 2, behavior: "instant" });
  }

  function start() {
    showPlace();
    for (const caption of document.querySelectorAll("[role=heading]:not([aria-level])")) caption.setAttribute("aria-level", "2");
    const sizes = new ResizeObserver((seen) => seen.forEach((one) => focusable(one.target)));
    for (const box of document.querySelectorAll(BOXES)) sizes.observe(box);
    document.addEventListener("mg-picture", (event) => {
      const box = event.target.closest(BOXES);
      if (box) focusable(box);
    });
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
