// Elements from values. Whatever comes from the service is put in as text, never read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element of HTML; properties named `on…` are listeners, false and null are left out. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An element of SVG. */
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/** Put children in the place of those that an element has. */
export function replace(element, ...children) {
  element.replaceChildren(...kept(children));
  return element;
}

/** A short random text, to tie a label to its field. */
export function newId() {
  return `id-${Math.random().toString(36).slice(2, 10)}`;
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false || name === "value") continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...kept(children));
  // A select has its options only now.
  if (properties.value !== undefined && properties.value !== null) element.value = properties.value;
  return element;
}

function kept(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false);
}
