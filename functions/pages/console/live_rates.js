// Messages a second of what somebody looks at: samples of five minutes, read with the page's figures.

import { Refused, get } from "./api.js";
import { counts, legend } from "./charts.js";
import { h } from "./dom.js";
import { number } from "./format.js";
import { t, translated } from "./i18n.js";
import { NO_SAMPLES, lineOf, meanOf, withReading } from "./rate_samples.js";

const SHOWN_MS = 300_000;
const MEAN_MS = 60_000;
// A page that reads again after a change would have a rate of half a second.
const SOON_MS = 2_000;
const READS_MISSED = 3;
const held = new Map();

/** Read one resource's rates now; `seconds`: how often its page does. */
export async function readLive(kind, name, seconds) {
  const now = Date.now();
  const mine = heldOf(kind, name);
  if (Math.abs(now - mine.asked) < SOON_MS) return;
  mine.asked = now;
  try {
    const found = await get("/rates", { [`${kind}s`]: name });
    const { kind: _, name: __, ...numbers } = found.rates[0];
    const first = new Date(found.starts_at).getTime();
    const reading = { at: now, first, step: found.interval_seconds * 1000, numbers };
    mine.known = withReading(mine.known, reading, READS_MISSED * seconds * 1000);
  } catch (error) {
    // It was deleted meanwhile: the page's own call tells that.
    if (!(error instanceof Refused && error.status === 404)) throw error;
  }
}

/** Forget everything: another key may be of another account. */
export function forget() {
  held.clear();
}

function heldOf(kind, name) {
  const key = `${kind} ${name}`;
  if (!held.has(key)) held.set(key, { asked: -SOON_MS, known: NO_SAMPLES });
  return held.get(key);
}

/** The chart of some kinds; beside each name the mean of the last minute, for the meter's steps. */
export function drawLive(kind, name, kinds, seconds) {
  const to = Date.now();
  const from = to - SHOWN_MS;
  const { samples } = heldOf(kind, name).known;
  const lines = kinds.map((each) => lineOf(samples, each, from));
  const known = lines[0].some(([, rate]) => rate !== null);
  return [
    known ? chart(samples, kinds, lines, [from, to]) : h("p", {}, t("live_rates.first")),
    h("p", { class: "quiet" }, t("live_rates.text", { seconds })),
  ];
}

function chart(samples, kinds, lines, [from, to]) {
  const said = kinds.map((each, place) => ({
    what: translated("rate", each),
    mean: number(meanOf(samples, each, to - MEAN_MS)),
    most: number(Math.max(...lines[place].map(([, rate]) => rate ?? 0))),
  }));
  const told = said.map((each) => t("live_rates.line", each)).join("; ");
  const drawn = Object.fromEntries(said.map(({ what }, place) => [what, lines[place]]));
  return [
    h("p", { class: "quiet" }, legend(said.map((each) => t("live_rates.figure", each)))),
    counts(t("live_rates.chart", { lines: told }), drawn, [from, to]),
  ];
}
