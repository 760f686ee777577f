// Drawings of figures. Colours are classes, for styles in attributes are forbidden to the page.

import { svg } from "./dom.js";
import { duration, number, time } from "./format.js";
import { t } from "./i18n.js";

const WIDE = 640;
const HIGH = 140;

/** A line of a few dozen values, without axes; `text` says it in words. */
export function sparkline(values, text) {
  const width = 96;
  const high = 20;
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map(
    (value, place) =>
      `${(place * step).toFixed(1)},${(high - 2 - (value / most) * (high - 4)).toFixed(1)}`,
  );
  return svg(
    "svg",
    {
      class: "sparkline",
      viewBox: `0 0 ${width} ${high}`,
      width,
      height: high,
      role: "img",
      "aria-label": text,
    },
    values.length > 1
      ? svg("polyline", { points: points.join(" ") })
      : svg("circle", { cx: 2, cy: high / 2, r: 2 }),
  );
}

/** Whole numbers for an axis from 0 to at least 1: at most six, so that none has a fraction. */
function wholeTicks(largest) {
  const most = Math.max(1, largest);
  const rough = most / 4;
  const power = 10 ** Math.max(0, Math.floor(Math.log10(rough)));
  const step = Math.max(
    1,
    [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough),
  );
  const ticks = [];
  for (let tick = 0; tick < most + step; tick += step) ticks.push(tick);
  return ticks;
}

/**
 * Counts over time. `series`: {name: [[ms, value], …]}; the names have classes line-0, line-1 …, and
 * a value that is null breaks a line. `span`: from when to when, that of the points if it is left out.
 */
export function counts(title, series, span = null) {
  const points = Object.values(series).flat();
  const times = points.map(([at]) => at);
  const [from, to] = span ?? [Math.min(...times), Math.max(...times)];
  const ticks = wholeTicks(Math.max(...points.map(([, value]) => value)));
  const top = ticks[ticks.length - 1];
  const left = 14 + number(top).length * 10;
  const x = (at) => left + ((at - from) / Math.max(1, to - from)) * (WIDE - left - 8);
  const y = (value) => HIGH - 20 - (value / top) * (HIGH - 32);
  return svg(
    "svg",
    { class: "chart", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": title },
    ticks.map((tick) => [
      svg("line", { class: "grid", x1: left, x2: WIDE - 8, y1: y(tick), y2: y(tick) }),
      svg("text", { x: left - 6, y: y(tick) + 4, class: "end" }, number(tick)),
    ]),
    svg("text", { x: left, y: HIGH - 4 }, time(new Date(from).toISOString())),
    to > from &&
      svg("text", { x: WIDE - 8, y: HIGH - 4, class: "end" }, time(new Date(to).toISOString())),
    Object.values(series).map((line, place) => drawn(line, place, x, y)),
  );
}

/** The lines through a series' points, from gap to gap; a dot where there is one alone. */
function drawn(series, place, x, y) {
  return pieces(series).map((line) => piece(line, place, x, y));
}

function pieces(series) {
  const found = [[]];
  for (const point of series) {
    if (point[1] === null) found.push([]);
    else found[found.length - 1].push(point);
  }
  return found.filter((line) => line.length);
}

function piece(line, place, x, y) {
  if (line.length === 1)
    return svg("circle", { class: `dot-${place}`, cx: x(line[0][0]), cy: y(line[0][1]), r: 3 });
  const points = line.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
  return svg("polyline", { class: `line-${place}`, points: points.join(" ") });
}

/** What the lines of a chart are, by the same classes. */
export function legend(names) {
  return names.map((name, place) => [
    svg(
      "svg",
      { class: "key", viewBox: "0 0 16 8", width: 16, height: 8, "aria-hidden": "true" },
      svg("line", { class: `line-${place}`, x1: 0, x2: 16, y1: 4, y2: 4 }),
    ),
    ` ${name}  `,
  ]);
}

/** Lengths beside each other: amounts or counts by name. `rows`: [[name, value, shown], …]. */
export function bars(title, rows) {
  const row = 24;
  const most = Math.max(...rows.map(([, value]) => value), 1e-12);
  return svg(
    "svg",
    {
      class: "chart",
      viewBox: `0 0 ${WIDE} ${rows.length * row}`,
      role: "img",
      "aria-label": title,
    },
    rows.map(([name, value, shown], place) => [
      svg("text", { x: 148, y: place * row + 16, class: "end" }, name),
      svg("rect", {
        x: 156,
        y: place * row + 5,
        height: 14,
        width: Math.max(value > 0 ? 2 : 0, (value / most) * 340),
      }),
      svg("text", { x: 162 + (Math.max(value, 0) / most) * 340, y: place * row + 16 }, shown),
    ]),
  );
}

/**
 * The ladder of a retry policy: a step for each wait, its height by the logarithm of the wait.
 * `attempts`: those that were made of a message; the wait that it is in is marked.
 */
export function ladder(waits, attempts = 0) {
  const shown = waits.slice(0, 24);
  const step = Math.min(56, (WIDE - 8) / shown.length);
  const largest = Math.log(Math.max(...shown) + 1) || 1;
  const high = (wait) => 12 + (Math.log(wait + 1) / largest) * 56;
  const text = t("ladder.text", { waits: shown.map(duration).join(", ") });
  return svg(
    "svg",
    {
      class: shown.length > 10 ? "chart ladder many" : "chart ladder",
      viewBox: `0 0 ${WIDE} 100`,
      role: "img",
      "aria-label": text,
    },
    shown.map((wait, place) => {
      const now = Math.min(attempts, shown.length) - 1;
      const state = place < now ? "done" : place === now ? "next" : "";
      return [
        svg("rect", {
          class: state,
          x: 4 + place * step,
          y: 80 - high(wait),
          width: step - 3,
          height: high(wait),
        }),
        step > 18 &&
          svg(
            "text",
            { class: "middle", x: 4 + place * step + (step - 3) / 2, y: 95 },
            shortened(wait),
          ),
      ];
    }),
  );
}

/** A duration in one unit, for the narrow steps of a ladder. */
function shortened(seconds) {
  const [size, unit] = [
    [3600, "h"],
    [60, "m"],
    [1, "s"],
  ].find(([each]) => seconds >= each) ?? [1, "s"];
  return `${number(Math.round((seconds / size) * 10) / 10)}${unit}`;
}
