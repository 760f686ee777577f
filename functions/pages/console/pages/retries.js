// Subscriptions that fail, are paused or unconfirmed, topic by topic, each with its ladder.

import { deadLettersSection, readDeadLetters } from "../dead_letters.js";
import { h, replace } from "../dom.js";
import { t } from "../i18n.js";
import { retryButtons, retryFigures } from "../retry_actions.js";
import { breakerBadge, readTopics, stateBadge } from "../subscriptions.js";
import { empty, outcome, pager } from "../ui.js";

const TOPICS = 25;
const SUBSCRIPTIONS = 100;
const SECONDS = 15;

export async function retriesPage({ query, live }) {
  const search = h("div");
  const list = h("div");
  const lost = h("div");
  const place = outcome();
  const refresh = async () => {
    const { page, states, left } = await readTopics(query, TOPICS, SUBSCRIPTIONS);
    const dead = await readDeadLetters([], states);
    const troubled = states.filter((held) => held.state !== "delivering");
    if (!search.contains(document.activeElement))
      replace(search, pager("/retries", query, page.cursor));
    replace(lost, deadLettersSection(dead));
    if (list.contains(document.activeElement) && document.activeElement.disabled) return;
    replace(
      list,
      troubled.map((held) => card(held, place, live)),
      !troubled.length &&
        !dead.found.length &&
        empty(t("retries.none", { subscriptions: states.length })),
      left > 0 && h("p", { class: "quiet" }, t("subscriptions.left", { left })),
    );
  };
  const element = h(
    "div",
    {},
    h("p", { class: "quiet" }, t("retries.text", { topics: TOPICS })),
    search,
    lost,
    place.element,
    list,
  );
  return { title: t("nav.retries"), element, refresh, seconds: SECONDS };
}

function card(held, place, live) {
  const to = `#/subscriptions/${encodeURIComponent(held.topic)}/${encodeURIComponent(held.name)}`;
  return h(
    "article",
    { class: "message", "aria-label": `${held.topic} / ${held.name}` },
    h(
      "h2",
      {},
      h("a", { href: to }, `${held.topic} / ${held.name}`),
      " ",
      stateBadge(held.state),
      " ",
      breakerBadge(held),
    ),
    held.endpoint && h("p", { class: "break" }, held.endpoint),
    retryFigures(held),
    retryButtons(held, place, () => live.now()),
  );
}
