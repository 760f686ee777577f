// What the contract says of a body's fields: types, ranges, defaults, from the OpenAPI document.

import { get } from "./api.js";

let schemas = null;

/** The fields of a body by name: {kind, nullable, choices, least, most, fallback, text}. */
export async function fieldsOf(shape) {
  schemas ??= (await get("/openapi.json")).components.schemas;
  const fields = {};
  for (const [name, given] of Object.entries(schemas[shape].properties)) {
    fields[name] = read(given);
  }
  return fields;
}

function read(given) {
  const options = given.anyOf ?? [given];
  const nullable = options.some((each) => each.type === "null");
  let main = options.find((each) => each.type !== "null");
  const named = main.$ref ? schemas[main.$ref.split("/").pop()] : null;
  const text = main.description ?? given.description ?? described(named);
  main = named ?? main;
  return {
    kind: kindOf(main),
    nullable,
    choices: main.enum ?? null,
    least: main.minimum,
    most: main.maximum,
    fallback: given.default,
    text: text ?? "",
  };
}

function kindOf(schema) {
  if (schema.enum) return "choice";
  if (schema.type === "integer" || schema.type === "number" || schema.type === "boolean")
    return schema.type;
  return schema.type === "string" ? "text" : "json";
}

/** A shape that is one of several says each: those of retry policies have their waits. */
function described(schema) {
  if (!schema) return undefined;
  const each = (schema.oneOf ?? []).map((one) => `${one.title}: ${one.description}`);
  const names = Object.entries(schema.properties ?? {}).map(([name, one]) =>
    one.description ? `${name}: ${one.description.split("\n")[0]}` : name,
  );
  return [...each, ...names].join("\n");
}
