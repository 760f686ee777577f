// Messages from a file: a JSON array, JSON objects one a line, or plain lines; in calls that fit.

const MOST_MESSAGES = 16;
const MOST_BYTES = 200_000;

/** The messages of a text; a line that is no JSON object is a body. */
export function readMessages(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith("[")) {
    try {
      const listed = JSON.parse(trimmed);
      if (Array.isArray(listed)) return listed.map(asMessage);
    } catch {
      // Lines that begin with a bracket are lines.
    }
  }
  return text
    .split(/\r?\n/)
    .filter((line) => line !== "")
    .map((line) => {
      if (!line.startsWith("{")) return { body: line };
      try {
        return asMessage(JSON.parse(line));
      } catch {
        return { body: line };
      }
    });
}

/** The same in groups that one call takes. */
export function inCalls(messages) {
  const calls = [];
  let size = Infinity;
  for (const message of messages) {
    const own = new TextEncoder().encode(JSON.stringify(message)).length;
    if (size + own > MOST_BYTES || calls[calls.length - 1]?.length === MOST_MESSAGES) {
      calls.push([]);
      size = 0;
    }
    calls[calls.length - 1].push(message);
    size += own;
  }
  return calls;
}

/** An object with a body is a message as the API takes it; any other value is a body of JSON. */
function asMessage(value) {
  if (typeof value === "string") return { body: value };
  const isMessage =
    value !== null && typeof value === "object" && ("body" in value || "body_base64" in value);
  return isMessage ? value : { body: JSON.stringify(value) };
}
