// The last day and week of a resource by the hour: read when somebody opens them, and not again.

import { get, isOfCall } from "./api.js";
import { counts, legend } from "./charts.js";
import { h, replace } from "./dom.js";
import { t, translated } from "./i18n.js";
import { outcome } from "./ui.js";

const WEEK_HOURS = 168;
const DAY_HOURS = 24;

/** A part that opens. `list`: queues, topics or subscriptions; `kinds`: the lines of its charts. */
export function pastHours(list, name, kinds) {
  const place = outcome();
  const drawn = h("div");
  const details = h(
    "details",
    { ontoggle: () => details.open && read() },
    h("summary", {}, t("past_hours.title")),
    place.element,
    drawn,
  );
  const read = async () => {
    place.clear();
    try {
      replace(drawn, charts(await get("/rates", { [list]: name, hours: WEEK_HOURS }), kinds));
    } catch (error) {
      if (!isOfCall(error)) throw error;
      place.bad(error);
    }
  };
  return details;
}

function charts(found, kinds) {
  const [rates] = found.rates;
  const first = new Date(found.starts_at).getTime();
  const step = found.interval_seconds * 1000;
  const points = (kind, hours) =>
    rates[kind].map((value, place) => [first + place * step, value]).slice(-hours);
  const names = kinds.map((kind) => translated("rate", kind));
  const kept = translated("rate", "kept");
  const chart = (title, hours) => [
    h("h3", {}, title),
    counts(title, Object.fromEntries(kinds.map((kind, at) => [names[at], points(kind, hours)]))),
  ];
  return [
    h("p", { class: "quiet" }, legend(names)),
    chart(t("past_hours.day"), DAY_HOURS),
    chart(t("past_hours.week"), WEEK_HOURS),
    !kinds.includes("published") && [
      h("h3", {}, t("past_hours.kept")),
      counts(t("past_hours.kept"), { [kept]: points("kept", WEEK_HOURS) }),
    ],
    h("p", { class: "quiet" }, t("past_hours.text")),
  ];
}
