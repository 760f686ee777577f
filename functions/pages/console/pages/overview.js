// All queues, a page of them at a time, and the first topics; what is failing is first.

import { Refused, each, get, queuePath } from "../api.js";
import { deadLettersSection, readDeadLetters } from "../dead_letters.js";
import { h, replace } from "../dom.js";
import { summed } from "../format.js";
import { t } from "../i18n.js";
import { newQueue, queueTable } from "../queue_table.js";
import { lastHours } from "../rates.js";
import { namesOf, readStates, statesTable } from "../subscriptions.js";
import { empty, nothing, pager, section, tiles } from "../ui.js";

const QUEUES = 25;
const TOPICS = 10;
const SUBSCRIPTIONS = 25;
const SECONDS = 15;

export async function overviewPage({ query }) {
  const queues = h("div", { "aria-busy": "true" }, skeleton());
  const topics = h("div");
  const search = h("div");
  const lost = h("div");
  const refresh = async () => {
    const prefix = query.get("prefix") ?? "";
    const [page, listed] = await Promise.all([
      get("/queues", { prefix, limit: QUEUES, cursor: query.get("cursor") ?? undefined }),
      get("/topics", { prefix, limit: TOPICS }),
    ]);
    const [shown, { states, left }] = await Promise.all([
      each(page.queues, (queue) => get(queuePath(queue.name))),
      readStates(
        listed.topics.map((topic) => topic.name),
        SUBSCRIPTIONS,
      ),
    ]);
    const there = shown.filter((queue) => !(queue instanceof Refused));
    const [dead, hours] = await Promise.all([
      readDeadLetters(there, states),
      lastHours({
        queues: there.map((queue) => queue.name),
        subscriptions: namesOf(states),
      }),
    ]);
    if (!search.contains(document.activeElement))
      replace(search, pager("/overview", query, page.cursor));
    queues.removeAttribute("aria-busy");
    replace(lost, deadLettersSection(dead));
    replace(queues, drawQueues(there, hours, prefix, dead));
    replace(topics, drawTopics(states, hours, listed, left, prefix));
  };
  const element = h(
    "div",
    {},
    search,
    lost,
    section(t("queues"), queues, newQueue()),
    section(t("subscriptions"), topics),
  );
  return { title: t("nav.overview"), element, refresh, seconds: SECONDS };
}

function skeleton() {
  return Array.from({ length: 6 }, () => h("div", { class: "skeleton" }));
}

function drawQueues(queues, hours, prefix, dead) {
  if (!queues.length) return nothing(prefix, t("queues.none"), "cirrusmq queue create orders");
  const all = queues.map((queue) => queue.counts);
  const failing = new Set(dead.found.map(({ queue }) => queue.name));
  return [
    h("p", { class: "quiet" }, t("queues.sums")),
    tiles([
      [t("backlog"), summed(all, "active")],
      [t("in_flight"), summed(all, "inactive")],
      [t("delayed"), summed(all, "delayed")],
    ]),
    queueTable(queues, hours, failing),
    h("p", { class: "quiet" }, h("a", { href: "#/queues" }, t("queues.all"))),
  ];
}

function drawTopics(states, hours, listed, left, prefix) {
  if (!listed.topics.length) {
    return nothing(prefix, t("topics.none"), "cirrusmq topic create news");
  }
  const more = listed.cursor || left > 0;
  return [
    states.length
      ? statesTable(t("subscriptions"), states, hours)
      : empty(
          t("subscriptions.none"),
          "cirrusmq subscribe news printer --url https://example.com/",
        ),
    h(
      "p",
      { class: "quiet" },
      more ? t("topics.first", { topics: TOPICS, subscriptions: SUBSCRIPTIONS }) : "",
      " ",
      h("a", { href: "#/topics" }, t("topics.all")),
    ),
  ];
}
