// The last hour as the service counted it, every five minutes: read at most once a minute.

import { Refused, get } from "./api.js";
import { counts, legend, sparkline } from "./charts.js";
import { h } from "./dom.js";
import { number } from "./format.js";
import { t, translated } from "./i18n.js";
import { badge, tiles } from "./ui.js";

const AGAIN_MS = 60_000;
const NAMES_OF_A_CALL = 50;
const ALSO = ["expired", "dead_lettered", "dropped", "rewound"];
const held = new Map();

/**
 * Read the last hour of these: {queues: [name, …], topics: …, subscriptions: …}. Answers a function
 * that gives a resource's: ("queue", name) → {starts: [ms, …], step: ms, sent: [count, …], …}, or
 * undefined where there is none.
 */
export async function lastHours(named) {
  const now = Date.now();
  const stale = Object.entries(named)
    .flatMap(([list, names]) => names.map((name) => [list, name]))
    .filter(([list, name]) => !(held.get(keyOf(list, name))?.read > now - AGAIN_MS));
  for (let first = 0; first < stale.length; first += NAMES_OF_A_CALL)
    await read(stale.slice(first, first + NAMES_OF_A_CALL), now);
  return (kind, name) => held.get(keyOf(`${kind}s`, name))?.hour;
}

/** Forget everything: another key may be of another account. */
export function forget() {
  held.clear();
}

const keyOf = (list, name) => `${list} ${name}`;

async function read(wanted, now) {
  const query = {};
  for (const [list, name] of wanted) query[list] = query[list] ? `${query[list]},${name}` : name;
  try {
    const found = await get("/rates", query);
    for (const { kind, name, span } of spans(found))
      held.set(keyOf(`${kind}s`, name), { read: now, hour: span });
  } catch (error) {
    // One of them was deleted meanwhile: the next minute's listing is without it.
    if (!(error instanceof Refused && error.status === 404)) throw error;
    for (const [list, name] of wanted) held.set(keyOf(list, name), { read: now });
  }
}

/** What `GET /rates` answered, by resource, each with its `span` as `lastHours` has it. */
export function spans(found) {
  const first = new Date(found.starts_at).getTime();
  const step = found.interval_seconds * 1000;
  return found.rates.map(({ kind, name, ...rates }) => {
    const starts = rates.kept.map((_, place) => first + place * step);
    return { kind, name, span: { starts, step, ...rates } };
  });
}

/** The head of a column that has a kind's lines. */
export function hourHead(kind) {
  return t("hour_of", { what: translated("rate", kind) });
}

/** A small line of a kind; with its sum, but for `kept`, which is no rate. */
export function hourLine(hour, kind) {
  if (!hour) return "";
  const values = hour[kind];
  const what = translated("rate", kind);
  const line = sparkline(values, t("sparkline", { what, values: values.join(", ") }));
  return kind === "kept" ? line : h("span", { class: "rate" }, line, ` ${number(sum(values))}`);
}

/** How many messages were given up in the hour: dead letters, and messages that were dropped. */
export function givenUp(hour) {
  return hour ? sum(hour.dead_lettered) + sum(hour.dropped) : 0;
}

/** A badge with that number, null for 0; it leads to the dead-letter queue `to` if there is one. */
export function givenUpBadge(hour, to = null) {
  const count = givenUp(hour);
  if (!count) return null;
  const text = t("given_up.count", { count: number(count) });
  return badge(to ? h("a", { href: `#/queues/${encodeURIComponent(to)}/dead` }, text) : text, "bad");
}

/** Charts of some kinds and of what is kept, and the sums of what is rare. */
export function drawHour(hour, kinds) {
  if (!hour) return [];
  const rare = ALSO.filter((kind) => sum(hour[kind]) > 0);
  return [
    legendOf(kinds),
    drawRates(t("counts.title"), hour, kinds),
    rare.length > 0 &&
      tiles(rare.map((kind) => [translated("rate", kind), number(sum(hour[kind]))])),
    drawKept(translated("rate", "kept"), hour, kinds),
    h("p", { class: "quiet" }, t("counts.late")),
  ];
}

/** What the lines of these kinds are. */
export function legendOf(kinds) {
  const names = kinds.map((kind) => translated("rate", kind));
  return h("p", { class: "quiet" }, legend(names));
}

/** A chart of some kinds in the last intervals of a span, all of them if `last` is left out. */
export function drawRates(title, span, kinds, last = span.starts.length) {
  const lines = kinds.map((kind) => [translated("rate", kind), points(span, kind, 0).slice(-last)]);
  return counts(title, Object.fromEntries(lines));
}

/** A chart of what is kept, with its title; none for a topic, whose messages are in its readers. */
export function drawKept(title, span, kinds) {
  if (kinds.includes("published")) return false;
  const line = { [translated("rate", "kept")]: points(span, "kept", span.step) };
  return [h("h3", {}, title), counts(title, line)];
}

/** Values with their times; `after`: how long after an interval's beginning they are true. */
function points(span, kind, after) {
  const now = Date.now();
  return span[kind].map((value, place) => [Math.min(now, span.starts[place] + after), value]);
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
