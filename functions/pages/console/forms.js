// Forms of attributes, made from what the contract says of a body's fields.

import { Refused } from "./api.js";
import { h, newId } from "./dom.js";
import { currentLanguage, t } from "./i18n.js";
import { makeInput, makeRow } from "./inputs.js";
import { makeNested, valueOf } from "./nested_inputs.js";
import { act, outcome } from "./ui.js";

/**
 * A form of some attributes. `fields`: of `schema.fieldsOf`; `values`: what they are now, or an
 * empty object. `send(changed)` is called with those that were changed; what it throws is shown
 * beside the field that the service names.
 */
export function attributesForm(fields, values, label, send) {
  const place = outcome();
  const inputs = {};
  const rows = Object.entries(fields).map(([name, field]) => {
    inputs[name] =
      makeNested(name, field, values[name]) ?? makeInput(name, field, values[name]);
    const input = inputs[name];
    return input.readValue ? input : makeRow(name, field, input);
  });
  const before = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, first(field, inputs[name], values[name])]),
  );
  const submit = h("button", { type: "submit", class: "main" }, label);
  const onsubmit = (event) => {
    event.preventDefault();
    for (const input of Object.values(inputs)) input.removeAttribute("aria-invalid");
    act(submit, place, async () => {
      try {
        await send(changes(fields, before, inputs), place);
      } catch (error) {
        const named = error instanceof Refused && error.parameter?.split(/[.[]/)[0];
        if (named in inputs) {
          inputs[named].setAttribute("aria-invalid", "true");
          (inputs[named].querySelector?.("input, select") ?? inputs[named]).focus();
        }
        throw error;
      }
    });
  };
  return h(
    "form",
    { class: "attributes", novalidate: true, onsubmit },
    currentLanguage() !== "en" && h("p", { class: "hint" }, t("form.in_english")),
    rows,
    place.element,
    submit,
  );
}

/** A labelled field. `properties`: of the element; `tag`: input, textarea or select. */
export function field(label, properties, tag = "input", ...children) {
  const id = newId();
  const input = h(tag, { id, ...properties }, ...children);
  return { input, row: h("div", { class: "field" }, h("label", { for: id }, label), input) };
}

/** A labelled choice of one value, or of any. `choices`: [[value, text], …]. */
export function choice(label, properties, choices) {
  const options = [["", t("any")], ...choices].map(([value, text]) => h("option", { value }, text));
  return field(label, properties, "select", options);
}

/** A checkbox with its label. */
export function checkbox(label, properties = {}) {
  const id = newId();
  const input = h("input", { id, type: "checkbox", ...properties });
  return { input, row: h("div", { class: "check" }, input, h("label", { for: id }, label)) };
}

/** `name=value` lines as an object; empty lines are left out. */
export function readPairs(text) {
  const pairs = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean)
    .map((line) => {
      const [name, ...value] = line.split("=");
      return [name.trim(), value.join("=").trim()];
    });
  return Object.fromEntries(pairs);
}

/** The value of a field that may be left empty, as a number. */
export function readNumber(text) {
  return text.trim() === "" ? undefined : Number(text);
}

function changes(fields, before, inputs) {
  const changed = {};
  for (const [name, field_] of Object.entries(fields)) {
    const value = valueOf(field_, inputs[name]);
    if (value !== undefined && JSON.stringify(value) !== JSON.stringify(before[name]))
      changed[name] = value;
  }
  return changed;
}

/** What a field is before anything is changed: an object as its own inputs have it. */
const first = (field_, input, value) => (input.readValue ? input.readValue() : (value ?? null));
