// Values as a reader likes them: numbers with separators, ages in two units, times of the day.

import { currentLanguage, t } from "./i18n.js";

export const NOTHING = "–";
// Keeps a value and its unit on one line.
const JOINED = "\u00a0";

/** A whole or fractional number with separators. */
export function number(value) {
  if (value === null || value === undefined) return NOTHING;
  return new Intl.NumberFormat(currentLanguage(), { maximumFractionDigits: 2 }).format(value);
}

/** A figure of a queue's or subscription's counts, marked if it is approximate. */
export function counted(counts, name) {
  return counts ? summed([counts], name) : NOTHING;
}

/** What is in a queue, receiver or subscription; marked if it is approximate. */
export function countedAll(counts) {
  return summed([counts], "active", "inactive", "delayed");
}

/** The sum of figures by these names, marked if one of the counts is approximate. */
export function summed(all, ...names) {
  const figures = all.flatMap((counts) => names.map((name) => counts[name]));
  if (figures.some((figure) => figure === null || figure === undefined)) return NOTHING;
  const shown = number(figures.reduce((sum, figure) => sum + figure, 0));
  return all.some((counts) => counts.approximate) ? `~${shown}` : shown;
}

/** A decimal text with its currency: never rounded to nothing. */
export function amount(text, currency) {
  const digits = Math.abs(Number(text)) >= 0.01 || Number(text) === 0 ? 2 : 6;
  const shown = Number(text).toLocaleString(currentLanguage(), {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return Number(text) !== 0 && Number(shown) === 0 ? `${text} ${currency}` : `${shown} ${currency}`;
}

/** `1 h 5 min`: the two largest units of a duration in seconds. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return NOTHING;
  const units = [
    ["day", 86400],
    ["hour", 3600],
    ["minute", 60],
    ["second", 1],
  ];
  const largest = units.findIndex(([, size]) => seconds >= size);
  if (largest < 0) return number(seconds) + JOINED + t("unit.second");
  let left = seconds;
  const parts = [];
  for (const [name, size] of units.slice(largest, largest + 2)) {
    const count = size === 1 ? Math.round(left * 100) / 100 : Math.floor(left / size);
    left -= count * size;
    if (count > 0) parts.push(number(count) + JOINED + t(`unit.${name}`));
  }
  return parts.join(JOINED);
}

/** The time of the service in the reader's zone, with its day unless that is today. */
export function time(text) {
  if (!text) return NOTHING;
  const at = new Date(text);
  const clock = at.toLocaleTimeString(currentLanguage(), { hour12: false });
  const today = at.toDateString() === new Date().toDateString();
  // Sweden writes the year first, as the service does.
  return today ? clock : `${at.toLocaleDateString("sv")} ${clock}`;
}

/** A size in bytes. */
export function bytes(count) {
  for (const [unit, size] of [
    ["GB", 1e9],
    ["MB", 1e6],
    ["kB", 1e3],
  ]) {
    if (count >= size) return `${(count / size).toFixed(1)} ${unit}`;
  }
  return `${number(count)} B`;
}

/** A value of an attribute on one line. */
export function plain(value) {
  if (value === null || value === undefined) return NOTHING;
  if (typeof value === "boolean") return t(value ? "yes" : "no");
  if (typeof value === "number") return number(value);
  if (typeof value === "object") return Object.keys(value).length ? spaced(value) : NOTHING;
  return String(value);
}

/** JSON with blanks behind commas and colons, at which a narrow column breaks it. */
function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.entries(value).map(([name, held]) => `"${name}": ${spaced(held)}`);
  return `{${members.join(", ")}}`;
}
