// An attempt: a ULID that names one call, so that the service knows its repetition.

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** A new ULID of a time in milliseconds since 1970. */
export function makeAttempt(milliseconds) {
  let time = "";
  for (let left = Math.floor(milliseconds), place = 0; place < 10; place += 1) {
    time = ALPHABET[left % 32] + time;
    left = Math.floor(left / 32);
  }
  const random = crypto.getRandomValues(new Uint8Array(16));
  return time + Array.from(random, (byte) => ALPHABET[byte % 32]).join("");
}
