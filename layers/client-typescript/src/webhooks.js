// Verifies posts of the service, by Web Crypto: in Node, Deno, Bun, workers and browsers.

import { fromBase64, toBase64 } from "./messages.js";

const TOLERANCE_SECONDS = 300;

/**
 * Whether the service posted this. `headers`: a Headers, or an object with names in lower case;
 * `body`: as it came, a Uint8Array or its text.
 */
export async function isGenuine(secret, headers, body, nowMs = Date.now()) {
  const read = (name) => (typeof headers.get === "function" ? headers.get(name) : headers[name]) ?? "";
  const sent = read("webhook-timestamp");
  if (!/^\d+$/.test(sent) || Math.abs(nowMs / 1_000 - Number(sent)) > TOLERANCE_SECONDS) return false;
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const head = new TextEncoder().encode(`${read("webhook-id")}.${sent}.`);
  const signed = new Uint8Array(head.length + bytes.length);
  signed.set(head);
  signed.set(bytes, head.length);
  const expected = `v1,${toBase64(await signature(secret, signed))}`;
  return read("webhook-signature").split(" ").some((given) => isSame(given, expected));
}

async function signature(secret, signed) {
  const key = fromBase64(secret.replace(/^whsec_/, ""));
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key, algorithm, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, signed));
}

/** Compares every character, wherever the first difference is. */
function isSame(given, expected) {
  if (given.length !== expected.length) return false;
  let difference = 0;
  for (let place = 0; place < expected.length; place += 1) {
    difference |= given.charCodeAt(place) ^ expected.charCodeAt(place);
  }
  return difference === 0;
}
