// Messages of one state, looked through within a bound: by text, by time, oldest or newest first.

import { post, queuePath } from "./api.js";

const OF_A_CALL = 16;
const CALLS = 20;

/** How many messages one look goes through at most. */
export const BOUND = OF_A_CALL * CALLS;

/**
 * Look through a queue's messages. `wanted`: {state, text, from, to, newest}; `cursor`: where an
 * earlier look ended. Resolves to {found, seen, cursor}: cursor is undefined at the end.
 */
export async function lookThrough(queue, wanted, cursor) {
  const path = queuePath(queue, "/messages/peek");
  const calls = isPlain(wanted) ? 1 : CALLS;
  const found = [];
  let seen = 0;
  let after = cursor;
  for (let call = 0; call < calls; call += 1) {
    const page = await post(path, { max: OF_A_CALL, state: wanted.state, cursor: after });
    seen += page.messages.length;
    found.push(...page.messages.filter((message) => matches(message, wanted)));
    after = page.cursor;
    if (!after) break;
  }
  const sign = wanted.newest ? -1 : 1;
  found.sort((one, other) => sign * (Date.parse(one.sent_at) - Date.parse(other.sent_at)));
  return { found, seen, cursor: after };
}

/** Whether a message is within the times, and has the text somewhere: in any case of letters. */
export function matches(message, { text, from, to }) {
  const sent = Date.parse(message.sent_at);
  if ((from && sent < from) || (to && sent > to)) return false;
  if (!text) return true;
  const wanted = text.toLowerCase();
  return textsOf(message).some((each) => each.toLowerCase().includes(wanted));
}

function textsOf({ id, group, tags = [], routing_key: key, attributes = {}, body, dead_letter: dead }) {
  const values = Object.entries(attributes).map(([name, value]) => `${name}=${value.base64 ?? value}`);
  return [id, group, key, ...tags, ...values, body, dead?.reason].filter(Boolean);
}

/** Nothing is asked that needs more than the next few. */
const isPlain = ({ text, from, to, newest }) => !text && !from && !to && !newest;
