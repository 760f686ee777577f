// The last hour as the service counted it, every five minutes: read at most once a minute.

import { Refused, get } from "./api.js";
import { counts, legend, sparkline } from "./charts.js";
import { h } from "./dom.js";
import { number } from "./format.js";
import { t, translated } from "./i18n.js";
import { tiles } from "./ui.js";

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
    const first = new Date(found.starts_at).getTime();
    const step = found.interval_seconds * 1000;
    for (const { kind, name, ...rates } of found.rates) {
      const starts = rates.kept.map((_, place) => first + place * step);
      held.set(keyOf(`${kind}s`, name), { read: now, hour: { starts, step, ...rates } });
    }
  } catch (error) {
    // One of them was deleted meanwhile: the next minute's listing is without it.
    if (!(error instanceof Refused && error.status === 404)) throw error;
    for (const [list, name] of wanted) held.set(keyOf(list, name), { read: now });
  }
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

/** Charts of some kinds and of what is kept, and the sums of what is rare. */
export function drawHour(hour, kinds) {
  if (!hour) return [];
  const rates = kinds.map((kind) => [translated("rate", kind), points(hour, kind, 0)]);
  const rare = ALSO.filter((kind) => sum(hour[kind]) > 0);
  const kept = translated("rate", "kept");
  return [
    h("p", { class: "quiet" }, legend(rates.map(([name]) => name))),
    counts(t("counts.title"), Object.fromEntries(rates)),
    rare.length > 0 &&
      tiles(rare.map((kind) => [translated("rate", kind), number(sum(hour[kind]))])),
    !kinds.includes("published") && [
      h("h3", {}, kept),
      counts(kept, { [kept]: points(hour, "kept", hour.step) }),
    ],
    h("p", { class: "quiet" }, t("counts.late")),
  ];
}

/** Values with their times; `after`: how long after an interval's beginning they are true. */
function points(hour, kind, after) {
  const now = Date.now();
  return hour[kind].map((value, place) => [Math.min(now, hour.starts[place] + after), value]);
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
