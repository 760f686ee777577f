// Topics with the states of their subscriptions: a call for each, so their number has a bound.

import { Refused, each, get, subscriptionPath, topicPath } from "./api.js";
import { h } from "./dom.js";
import { counted, duration, time } from "./format.js";
import { t, translated } from "./i18n.js";
import { givenUp, givenUpBadge, hourHead, hourLine } from "./rates.js";
import { badge, table } from "./ui.js";

const TONES = { delivering: "good", retrying: "bad", unconfirmed: "waiting", paused: "waiting" };

/** A page of topics by the query's prefix and cursor, with the states of their subscriptions. */
export async function readTopics(query, topics, subscriptions) {
  const page = await get("/topics", {
    prefix: query.get("prefix") ?? "",
    limit: topics,
    cursor: query.get("cursor") ?? undefined,
  });
  const names = page.topics.map((topic) => topic.name);
  return { page, ...(await readStates(names, subscriptions)) };
}

/** The subscriptions of these topics with their states, failing ones first; at most so many. */
export async function readStates(topics, most) {
  const pages = await each(topics, (topic) => get(topicPath(topic, "/subscriptions")));
  const listed = pages
    .filter((page) => !(page instanceof Refused))
    .flatMap((page) => page.subscriptions);
  const chosen = listed.slice(0, most);
  const states = await each(chosen, (held) => get(subscriptionPath(held.topic, held.name)));
  const found = states.filter((state) => !(state instanceof Refused));
  found.sort((one, other) => rank(one) - rank(other));
  return { states: found, left: listed.length - chosen.length };
}

/** A badge for the state of a subscription. */
export function stateBadge(state) {
  return badge(translated("state", state), TONES[state] ?? "");
}

/** A badge for the breaker of a subscription or queue, if it is open; else null. */
export function breakerBadge(held) {
  return held.breaker_state === "open" ? badge(t("breaker.open"), "bad") : null;
}

/** The names of those subscriptions that keep messages, as rates are asked for. */
export function namesOf(states) {
  return states.filter((held) => held.counts).map((held) => `${held.topic}/${held.name}`);
}

/**
 * A table of subscriptions; `hours` gives the last hour of those that keep messages. Subscriptions
 * that retry or gave messages up in that hour are first.
 */
export function statesTable(caption, states, hours) {
  const hourOf = (held) => hours("subscription", `${held.topic}/${held.name}`);
  const fails = (held) => held.state === "retrying" || givenUp(hourOf(held)) > 0;
  const sorted = [...states].sort((one, other) => fails(other) - fails(one));
  return table(
    caption,
    [
      { head: t("subscription"), cell: (held) => nameLink(held) },
      {
        head: t("state"),
        cell: (held) =>
          h(
            "span",
            {},
            stateBadge(held.state),
            " ",
            breakerBadge(held),
            " ",
            givenUpBadge(hourOf(held), held.dead_letter_queue),
          ),
      },
      { head: t("backlog"), number: true, cell: (held) => counted(held.counts, "active") },
      { head: t("in_flight"), number: true, cell: (held) => counted(held.counts, "inactive") },
      { head: t("oldest"), number: true, cell: (held) => duration(held.oldest_active_age_seconds) },
      ...["delivered", "kept"].map((kind) => ({
        head: hourHead(kind),
        minor: true,
        cell: (held) => hourLine(hourOf(held), kind),
      })),
      { head: t("next_attempt"), cell: (held) => time(held.next_attempt_at) },
      { head: t("last_error"), cell: (held) => held.last_error ?? "" },
      {
        head: t("goes_to"),
        cell: (held) =>
          h(
            "span",
            { class: "break" },
            held.endpoint ?? translated("mode", held.mode ?? held.protocol),
          ),
      },
    ],
    sorted,
  );
}

function nameLink(held) {
  const to = `#/subscriptions/${encodeURIComponent(held.topic)}/${encodeURIComponent(held.name)}`;
  return h("a", { href: to }, `${held.topic} / ${held.name}`);
}

function rank(held) {
  return ["retrying", "unconfirmed", "paused", "delivering"].indexOf(held.state);
}
