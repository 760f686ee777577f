// Counts as this tab has seen them: an hour of samples, for the API keeps none.

const KEPT_MS = 3_600_000;
const held = new Map();

/** Remember a value of a series now; answers the series, oldest first: [[ms, value], …]. */
export function remember(name, value) {
  const now = Date.now();
  const series = (held.get(name) ?? []).filter(([at]) => at > now - KEPT_MS);
  series.push([now, value]);
  held.set(name, series);
  return series;
}

/** Forget everything: another key may be of another account. */
export function forget() {
  held.clear();
}
