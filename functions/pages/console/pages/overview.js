// All queues, a page of them at a time, and the first topics; what is failing is first.

import { Refused, call, each, get, queuePath } from "../api.js";
import { h, replace } from "../dom.js";
import { field } from "../forms.js";
import { counted, duration, summed } from "../format.js";
import { t } from "../i18n.js";
import { hourHead, hourLine, lastHours } from "../rates.js";
import { namesOf, readStates, statesTable } from "../subscriptions.js";
import { act, badge, empty, nothing, outcome, pager, section, table, tiles } from "../ui.js";

const QUEUES = 25;
const TOPICS = 10;
const SUBSCRIPTIONS = 25;
const SECONDS = 15;

export async function overviewPage({ query }) {
  const queues = h("div", { "aria-busy": "true" }, skeleton());
  const topics = h("div");
  const search = h("div");
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
    const hours = await lastHours({
      queues: there.map((queue) => queue.name),
      subscriptions: namesOf(states),
    });
    if (!search.contains(document.activeElement))
      replace(search, pager("/overview", query, page.cursor));
    queues.removeAttribute("aria-busy");
    replace(queues, drawQueues(there, hours, prefix));
    replace(topics, drawTopics(states, hours, listed, left, prefix));
  };
  const element = h(
    "div",
    {},
    search,
    section(t("queues"), queues, newQueue()),
    section(t("subscriptions"), topics),
  );
  return { title: t("nav.overview"), element, refresh, seconds: SECONDS };
}

function skeleton() {
  return Array.from({ length: 6 }, () => h("div", { class: "skeleton" }));
}

function drawQueues(queues, hours, prefix) {
  if (!queues.length) return nothing(prefix, t("queues.none"), "cirrusmq queue create orders");
  const dead = new Set(queues.map((queue) => queue.dead_letter?.queue));
  const failing = (queue) => dead.has(queue.name) && queue.counts.active > 0;
  queues.sort((one, other) => failing(other) - failing(one));
  const all = queues.map((queue) => queue.counts);
  return [
    h("p", { class: "quiet" }, t("queues.sums")),
    tiles([
      [t("backlog"), summed(all, "active")],
      [t("in_flight"), summed(all, "inactive")],
      [t("delayed"), summed(all, "delayed")],
      [
        t("dead_letters"),
        summed(
          queues.filter(failing).map((queue) => queue.counts),
          "active",
        ),
        queues.some(failing) && "bad",
      ],
    ]),
    table(
      t("queues"),
      [
        {
          head: t("queue"),
          cell: (queue) =>
            h("a", { href: `#/queues/${encodeURIComponent(queue.name)}` }, queue.name),
        },
        {
          head: t("state"),
          cell: (queue) => (failing(queue) ? badge(t("dead_letters"), "bad") : ""),
        },
        { head: t("backlog"), number: true, cell: (queue) => counted(queue.counts, "active") },
        { head: t("in_flight"), number: true, cell: (queue) => counted(queue.counts, "inactive") },
        { head: t("delayed"), number: true, cell: (queue) => counted(queue.counts, "delayed") },
        {
          head: t("oldest"),
          number: true,
          cell: (queue) => duration(queue.counts.oldest_active_age_seconds),
        },
        ...["sent", "kept"].map((kind) => ({
          head: hourHead(kind),
          cell: (queue) => hourLine(hours("queue", queue.name), kind),
        })),
      ],
      queues,
    ),
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

function newQueue() {
  const place = outcome();
  const name = field(t("name"), {
    name: "queue",
    required: true,
    maxlength: 64,
    spellcheck: "false",
    autocomplete: "off",
  });
  const submit = h("button", { type: "submit" }, t("queue.create"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(submit, place, async () => {
      const queue = await call("PUT", queuePath(name.input.value.trim()), {}, { exact: true });
      location.hash = `/queues/${encodeURIComponent(queue.name)}`;
    });
  };
  return h(
    "details",
    {},
    h("summary", {}, t("queue.new")),
    h("form", { class: "inline", onsubmit }, name.row, submit),
    place.element,
  );
}
