// Forms of attributes, made from what the contract says of a body's fields.

import { Refused } from "./api.js";
import { h, newId } from "./dom.js";
import { t } from "./i18n.js";
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
    inputs[name] = makeInput(name, field, values[name]);
    return row(name, field, inputs[name]);
  });
  const submit = h("button", { type: "submit", class: "main" }, label);
  const onsubmit = (event) => {
    event.preventDefault();
    for (const input of Object.values(inputs)) input.removeAttribute("aria-invalid");
    act(submit, place, async () => {
      try {
        await send(changes(fields, values, inputs), place);
      } catch (error) {
        const named = error instanceof Refused && error.parameter?.split(/[.[]/)[0];
        if (named in inputs) {
          inputs[named].setAttribute("aria-invalid", "true");
          inputs[named].focus();
        }
        throw error;
      }
    });
  };
  return h(
    "form",
    { class: "attributes", novalidate: true, onsubmit },
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

/** The value of a field in JSON; `name`: of the field that is named where it is none. */
export function readJson(text, name) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refused(400, { detail: t("form.not_json", { name }), parameter: name });
  }
}

/** Words between commas as a list. */
export function readList(text) {
  return text
    .split(",")
    .map((word) => word.trim())
    .filter(Boolean);
}

/** The value of a field that may be left empty, as a number. */
export function readNumber(text) {
  return text.trim() === "" ? undefined : Number(text);
}

function row(name, field_, input) {
  const hint = newId();
  input.setAttribute("aria-describedby", hint);
  const range = [
    field_.text,
    field_.fallback !== undefined && field_.fallback !== null
      ? t("form.default", { value: JSON.stringify(field_.fallback) })
      : "",
  ]
    .filter(Boolean)
    .join("; ");
  return h(
    "div",
    { class: "field" },
    h("label", { for: input.id }, name),
    input,
    h("p", { id: hint, class: "hint" }, range || (field_.nullable ? t("form.empty_unsets") : "")),
  );
}

function makeInput(name, field_, value) {
  const id = newId();
  const common = { id, name, spellcheck: "false", autocomplete: "off" };
  if (field_.kind === "boolean") {
    const options = ["true", "false"].map((each) =>
      h("option", { value: each }, t(each === "true" ? "yes" : "no")),
    );
    return h("select", { ...common, value: String(value ?? field_.fallback ?? false) }, options);
  }
  if (field_.kind === "choice") {
    const options = ["", ...field_.choices].map((each) => h("option", { value: each }, each));
    return h("select", { ...common, value: value ?? field_.fallback ?? "" }, options);
  }
  if (field_.kind === "json") {
    const text = value === null || value === undefined ? "" : JSON.stringify(value);
    return h("textarea", { ...common, rows: 2, value: text });
  }
  if (field_.kind === "text") return h("input", { ...common, type: "text", value: value ?? "" });
  const step = field_.kind === "integer" ? 1 : "any";
  return h("input", {
    ...common,
    type: "number",
    min: field_.least,
    max: field_.most,
    step,
    value: value ?? "",
  });
}

function changes(fields, values, inputs) {
  const changed = {};
  for (const [name, field_] of Object.entries(fields)) {
    const value = read(field_, inputs[name]);
    const before = values[name] ?? null;
    if (value !== undefined && JSON.stringify(value) !== JSON.stringify(before))
      changed[name] = value;
  }
  return changed;
}

function read(field_, input) {
  const text = input.value.trim();
  if (field_.kind === "boolean") return text === "true";
  if (text === "") return field_.nullable ? null : undefined;
  if (field_.kind === "integer" || field_.kind === "number") return Number(text);
  return field_.kind === "json" ? readJson(text, input.name) : text;
}
