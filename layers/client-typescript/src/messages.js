// Bodies and attributes: texts stay texts, bytes are base64 in JSON.

/** A message as a call takes it. A text is a body; bytes are `body_base64`. */
export function toJson(message) {
  if (typeof message === "string" || message instanceof Uint8Array) return content(message);
  const { body, attributes, ...others } = message;
  const made = { ...others, ...content(body) };
  if (attributes) {
    made.attributes = Object.fromEntries(
      Object.entries(attributes).map(([name, value]) => [
        name,
        valueToJson(value),
      ]),
    );
  }
  return made;
}

/** An attribute's value as a call takes it. */
export function valueToJson(value) {
  return value instanceof Uint8Array ? { base64: toBase64(value) } : value;
}

/** A received message with its body as `text` and `bytes`. */
export function fromJson(message) {
  return Object.defineProperties({ ...message }, {
    bytes: {
      get() {
        const { body, body_base64: base64 } = message;
        return body === undefined ? fromBase64(base64 ?? "") : new TextEncoder().encode(body);
      },
    },
    text: {
      get() {
        return message.body ?? new TextDecoder("utf-8", { fatal: true }).decode(this.bytes);
      },
    },
  });
}

/** Bytes as base64. */
export function toBase64(bytes) {
  let text = "";
  for (let from = 0; from < bytes.length; from += 8_192) {
    text += String.fromCharCode(...bytes.subarray(from, from + 8_192));
  }
  return btoa(text);
}

/** Base64 as bytes; throws where it is none. */
export function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function content(body) {
  if (typeof body === "string") return { body };
  if (body instanceof Uint8Array) return { body_base64: toBase64(body) };
  throw new TypeError("body: must be a string or a Uint8Array");
}
