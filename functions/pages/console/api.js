// The public HTTP API, at the same origin as the console. The access key is in this tab alone.

const KEY = "cirrusmq-key";

/** The service refused a call: `detail` is its own sentence, `parameter` the value it is about. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `HTTP ${status}`);
    this.status = status;
    this.code = problem.code || "";
    this.parameter = problem.parameter;
    this.requestId = problem.request_id;
  }
}

/** No answer came: the service is down, or the network is. */
export class Unreachable extends Error {}

/** Whether an error is of a call; any other is a fault of the console, and is not hidden. */
export function isOfCall(error) {
  return error instanceof Refused || error instanceof Unreachable;
}

let made = 0;

/** How many calls were made since the page was loaded. */
export function callsMade() {
  return made;
}

/** Take a key for this tab; it is gone when the tab is closed. */
export function signIn(id, secret) {
  sessionStorage.setItem(KEY, JSON.stringify({ id, secret }));
}

/** Forget the key. */
export function signOut() {
  sessionStorage.removeItem(KEY);
}

/** The id of the key that is signed in with, or null. */
export function keyId() {
  return storedKey()?.id ?? null;
}

/** Make a call; answers the JSON, or null where there is none. Refused, Unreachable. */
export async function call(method, path, body, query = {}) {
  made += 1;
  const key = storedKey();
  const headers = {};
  if (key) headers.Authorization = `Bearer ${key.id}:${key.secret}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await reach(`..${path}${queryText(query)}`, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
    credentials: "omit",
  });
  const text = await answer.text();
  const value = parsed(text);
  if (!answer.ok) throw new Refused(answer.status, value ?? { detail: text.slice(0, 200) });
  return value;
}

export const get = (path, query) => call("GET", path, undefined, query);
export const post = (path, body = {}) => call("POST", path, body);

/** The path of a queue, and of what is below it. */
export const queuePath = (queue, below = "") => `/queues/${encodeURIComponent(queue)}${below}`;

/** The path of a topic, and of what is below it. */
export const topicPath = (topic, below = "") => `/topics/${encodeURIComponent(topic)}${below}`;

/** The path of a subscription, and of what is below it. */
export const subscriptionPath = (topic, name, below = "") =>
  topicPath(topic, `/subscriptions/${encodeURIComponent(name)}${below}`);

/** All entries of a listing, page after page, but at most so many. `query`: what else is asked. */
export async function listAll(path, field, most, query = {}) {
  const found = [];
  let cursor;
  do {
    const page = await get(path, { ...query, limit: Math.min(most, 1000), cursor });
    found.push(...page[field]);
    cursor = page.cursor;
  } while (cursor && found.length < most);
  return found.slice(0, most);
}

/** Call for each item, a few at a time; a refused one has the error in the place of its result. */
export async function each(items, work) {
  const results = new Array(items.length);
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const place = next;
      next += 1;
      results[place] = await work(items[place]).catch((error) => {
        if (error instanceof Refused && error.status === 404) return error;
        throw error;
      });
    }
  };
  await Promise.all(Array.from({ length: Math.min(6, items.length) }, worker));
  return results;
}

function storedKey() {
  const text = sessionStorage.getItem(KEY);
  return text ? JSON.parse(text) : null;
}

async function reach(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    throw new Unreachable(String(error));
  }
}

function queryText(query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}
