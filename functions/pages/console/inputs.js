// Inputs of single values, made from what the contract says of a field, and what is read of them.

import { Refused } from "./api.js";
import { h, newId } from "./dom.js";
import { t } from "./i18n.js";

/** An input of one value. `field`: of `schema.fieldsOf`; `value`: what it is now. */
export function makeInput(name, field, value) {
  const id = newId();
  const common = { id, name, spellcheck: "false", autocomplete: "off" };
  if (field.kind === "boolean") {
    const options = ["true", "false"].map((each) =>
      h("option", { value: each }, t(each === "true" ? "yes" : "no")),
    );
    return h("select", { ...common, value: String(value ?? field.fallback ?? false) }, options);
  }
  if (field.kind === "choice") {
    const options = ["", ...field.choices].map((each) => h("option", { value: each }, each));
    return h("select", { ...common, value: value ?? field.fallback ?? "" }, options);
  }
  if (isJson(field)) {
    const text = value === null || value === undefined ? "" : JSON.stringify(value);
    return h("textarea", { ...common, rows: 2, value: text });
  }
  if (field.kind === "numbers" || field.kind === "words")
    return h("input", { ...common, type: "text", value: (value ?? []).join(", ") });
  if (field.kind === "text") return h("input", { ...common, type: "text", value: value ?? "" });
  const step = field.kind === "integer" ? 1 : "any";
  return h("input", {
    ...common,
    type: "number",
    min: field.least,
    max: field.most,
    step,
    value: value ?? "",
  });
}

/** The value of an input; undefined if it was left empty, null if that unsets it. */
export function readInput(field, input) {
  const text = input.value.trim();
  if (field.kind === "boolean") return text === "true";
  if (text === "") return field.nullable ? null : undefined;
  if (field.kind === "integer" || field.kind === "number") return Number(text);
  if (field.kind === "numbers") return text.split(",").map((each) => readPart(each, input.name));
  if (field.kind === "words") return readList(text);
  return isJson(field) ? readJson(text, input.name) : text;
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

/** What a field takes and has by default, in the contract's words: their first paragraph. */
function hintOf(field) {
  const held = field.fallback;
  const shown = held === undefined || held === null ? "" : JSON.stringify(held);
  const text = field.text.split("\n\n")[0];
  const range = [text, shown && t("form.default", { value: shown })].filter(Boolean);
  return range.join("; ") || (field.nullable ? t("form.empty_unsets") : "");
}

const isJson = (field) => ["json", "object", "variants"].includes(field.kind);

function readPart(text, name) {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value)) return value;
  throw new Refused(400, { detail: t("form.not_numbers", { name }), parameter: name });
}

/** An input with its name before it, and what the contract says of it below. */
export function makeRow(name, field, input) {
  const hint = newId();
  input.setAttribute("aria-describedby", hint);
  return h(
    "div",
    { class: "field" },
    h("label", { for: input.id }, name),
    input,
    h("p", { id: hint, class: "hint", lang: "en" }, hintOf(field)),
  );
}
