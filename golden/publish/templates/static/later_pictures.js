/* Loads the pictures that golden/publish/slots.py put into files of their own, as soon as the text is there: a
   print, too, has them all. */
"use strict";
(() => {
  const root = document.currentScript.src.replace(/later_pictures\.js.*$/, "pictures/");
  const waiting = new Map(); // by key: the places for a picture that is under way

  function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  window.mmagoldPicture = async (key, packed) => {
    const drawing = await unpacked(packed);
    for (const place of waiting.get(key) ?? []) {
      const label = place.getAttribute("aria-label");
      place.innerHTML = drawing;
      const svg = place.firstElementChild;
      svg.removeAttribute("aria-hidden");
      svg.setAttribute("aria-label", label);
      place.removeAttribute("role");
      place.removeAttribute("aria-label");
      place.removeAttribute("style");
      place.dispatchEvent(new CustomEvent("mg-picture", { bubbles: true }));
    }
    waiting.delete(key);
  };

  function load(place) {
    const key = place.dataset.picture;
    delete place.dataset.picture;
    if (waiting.has(key)) { waiting.get(key).push(place); return; }
    waiting.set(key, [place]);
    const script = document.createElement("script");
    script.src = `${root}${key}.js`;
    script.onload = () => script.remove();
    document.head.append(script);
  }

  const start = () => document.querySelectorAll("[data-picture]").forEach(load);

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
