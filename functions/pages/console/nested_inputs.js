// Inputs of a value that is an object: a group of its members, or of the variant that is chosen.

import { h, newId, replace } from "./dom.js";
import { t } from "./i18n.js";
import { makeInput, makeRow, readInput } from "./inputs.js";

/**
 * A group of inputs, or null where the field has a single one. Its `readValue()` answers the object,
 * or null if nothing is given; `writeValue(object)` puts another there.
 */
export function makeNested(name, field, value) {
  if (field.kind === "object") return group(name, members(field.fields, value ?? {}));
  return field.kind === "variants" ? oneOf(name, field, value) : null;
}

function group(name, { rows, read, write }) {
  const element = h("fieldset", { class: "nested", name }, h("legend", {}, name), rows);
  element.readValue = read;
  element.writeValue = write;
  return element;
}

/** The members of an object, each with its label, or a group within it; empty ones are left out. */
function members(fields, value) {
  const inputs = Object.entries(fields).map(([name, field]) => [
    name,
    field,
    makeNested(name, field, value[name]) ?? makeInput(name, field, value[name]),
  ]);
  const read = () => {
    const given = inputs
      .map(([name, field, input]) => [name, valueOf(field, input)])
      .filter(([, each]) => each !== undefined && each !== null);
    return given.length ? Object.fromEntries(given) : null;
  };
  const write = (object) => {
    for (const [name, field, input] of inputs) {
      if (input.writeValue) input.writeValue(object[name] ?? {});
      else input.value = makeInput(name, field, object[name]).value;
    }
  };
  const rows = inputs.map(([name, field, input]) =>
    input.readValue ? input : makeRow(name, field, input),
  );
  return { rows, read, write };
}

/** What an input or a group has; undefined or null as `readInput` has it. */
export function valueOf(field, input) {
  return input.readValue ? input.readValue() : readInput(field, input);
}

/** A choice of a variant by its title, and that one's members: `policy` names it. */
function oneOf(name, field, value) {
  const id = newId();
  const rest = h("div");
  let read = () => ({});
  const options = [["", t("form.none")], ...field.variants.map(({ title }) => [title, title])];
  const choice = h(
    "select",
    { id, value: value?.policy ?? "", onchange: () => show({}) },
    options.map(([title, text]) => h("option", { value: title }, text)),
  );
  const show = (held) => {
    const chosen = field.variants.find(({ title }) => title === choice.value);
    const inner = chosen ? members(chosen.fields, held) : { rows: [], read: () => ({}) };
    read = inner.read;
    replace(rest, chosen && h("p", { class: "hint", lang: "en" }, chosen.text), inner.rows);
  };
  show(value ?? {});
  const rows = [h("div", { class: "field" }, h("label", { for: id }, "policy"), choice), rest];
  const whole = () => (choice.value ? { policy: choice.value, ...read() } : null);
  return group(name, { rows, read: whole });
}
