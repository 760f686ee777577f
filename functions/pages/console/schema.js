// What the contract says of a body's fields: types, ranges, defaults, from the OpenAPI document.

import { get } from "./api.js";

const LISTS = { string: "words", number: "numbers" };

let schemas = null;

/**
 * The fields of a body by name: {kind, nullable, choices, least, most, fallback, text}; of an object
 * its own `fields`, of a shape that is one of several its `variants`: [{title, text, fields}, …].
 */
export async function fieldsOf(shape) {
  schemas ??= (await get("/openapi.json")).components.schemas;
  return fieldsIn(schemas[shape]);
}

function fieldsIn(schema) {
  return Object.fromEntries(
    Object.entries(schema.properties ?? {}).map(([name, given]) => [name, read(given)]),
  );
}

function read(given) {
  const options = given.anyOf ?? [given];
  const nullable = options.some((each) => each.type === "null");
  let main = options.find((each) => each.type !== "null");
  const named = main.$ref ? schemas[main.$ref.split("/").pop()] : null;
  const text = main.description ?? given.description ?? described(named);
  main = named ?? main;
  const kind = kindOf(main);
  return {
    kind,
    fields: kind === "object" ? fieldsIn(main) : null,
    variants: kind === "variants" ? main.oneOf.map(variant) : null,
    nullable,
    choices: main.enum ?? null,
    least: main.minimum,
    most: main.maximum,
    fallback: given.default,
    text: text ?? "",
  };
}

/** One of several shapes: the member that names it is left out of its fields. */
function variant({ title, description, properties }) {
  const own = Object.entries(properties).filter(([, one]) => one.const === undefined);
  return { title, text: description, fields: fieldsIn({ properties: Object.fromEntries(own) }) };
}

function kindOf(schema) {
  if (schema.enum) return "choice";
  if (schema.oneOf?.every((one) => one.title)) return "variants";
  if (schema.type === "array") return LISTS[schema.items.type] ?? "json";
  if (schema.properties && Object.values(schema.properties).every(isPlain)) return "object";
  if (schema.type === "integer" || schema.type === "number" || schema.type === "boolean")
    return schema.type;
  return schema.type === "string" ? "text" : "json";
}

/** A value with inputs of its own; an object whose names are free is one in JSON. */
const isPlain = ({ type, items, properties, anyOf, enum: words }) =>
  Boolean(words) ||
  ["string", "integer", "number", "boolean"].includes(type) ||
  (type === "object" && !properties) ||
  (items?.type ?? "") in LISTS ||
  (anyOf?.every((one) => one.type === "null" || isPlain(one) || isObject(one)) ?? false);

/** A reference to an object whose members have inputs, as the breaker of `invoke`. */
const isObject = ({ $ref }) => Boolean($ref) && kindOf(schemas[$ref.split("/").pop()]) === "object";

/** A shape that is one of several says each: those of retry policies have their waits. */
function described(schema) {
  if (!schema) return undefined;
  const each = (schema.oneOf ?? []).map((one) => `${one.title}: ${one.description}`);
  const names = Object.entries(schema.properties ?? {}).map(([name, one]) =>
    one.description || one.enum
      ? `${name}: ${one.description?.split("\n")[0] ?? one.enum.join(", ")}`
      : name,
  );
  return [...each, ...names].join("\n");
}
