// Elements of HTML and SVG in a line each.

const SVG = "http://www.w3.org/2000/svg";

// h("td", { class: "code" }, "text", element, ...); on...: listeners; null and false leave an attribute out.
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const find = (id) => document.getElementById(id);

// Puts other content into an element.
export function fill(id, ...children) {
  find(id).replaceChildren(...children.flat().filter((child) => child !== null));
}
