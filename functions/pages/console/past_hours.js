// The last day and week of a resource by the hour: read when somebody opens them, and not again.

import { get, isOfCall } from "./api.js";
import { h, replace } from "./dom.js";
import { t } from "./i18n.js";
import { drawKept, drawRates, legendOf, spans } from "./rates.js";
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
  const [{ span }] = spans(found);
  const chart = (title, hours) => [h("h3", {}, title), drawRates(title, span, kinds, hours)];
  return [
    legendOf(kinds),
    chart(t("past_hours.day"), DAY_HOURS),
    chart(t("past_hours.week"), WEEK_HOURS),
    drawKept(t("past_hours.kept"), span, kinds),
    h("p", { class: "quiet" }, t("past_hours.text")),
  ];
}
