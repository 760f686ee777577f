// All topics, a page of them at a time, with the states of their subscriptions.

import { call, topicPath } from "../api.js";
import { h, replace } from "../dom.js";
import { field } from "../forms.js";
import { t } from "../i18n.js";
import { hourHead, hourLine, lastHours } from "../rates.js";
import { namesOf, readTopics, statesTable } from "../subscriptions.js";
import { act, nothing, outcome, pager, section, table } from "../ui.js";

const TOPICS = 25;
const SUBSCRIPTIONS = 100;
const SECONDS = 30;

export async function topicsPage({ query }) {
  const search = h("div");
  const topics = h("div");
  const subscriptions = h("div");
  const refresh = async () => {
    const { page, states, left } = await readTopics(query, TOPICS, SUBSCRIPTIONS);
    const hours = await lastHours({
      topics: page.topics.map((topic) => topic.name),
      subscriptions: namesOf(states),
    });
    if (!search.contains(document.activeElement))
      replace(search, pager("/topics", query, page.cursor));
    replace(
      topics,
      page.topics.length
        ? topicsTable(page.topics, hours)
        : nothing(query.get("prefix"), t("topics.none"), "cirrusmq topic create news"),
    );
    replace(
      subscriptions,
      states.length
        ? statesTable(t("subscriptions"), states, hours)
        : h("p", { class: "quiet" }, t("subscriptions.none")),
      left > 0 && h("p", { class: "quiet" }, t("subscriptions.left", { left })),
    );
  };
  const element = h(
    "div",
    {},
    search,
    section(t("nav.topics"), topics, newTopic()),
    section(t("subscriptions"), subscriptions),
  );
  return { title: t("nav.topics"), element, refresh, seconds: SECONDS };
}

function topicsTable(topics, hours) {
  return table(
    t("nav.topics"),
    [
      {
        head: t("topic"),
        cell: (topic) => h("a", { href: `#/topics/${encodeURIComponent(topic.name)}` }, topic.name),
      },
      { head: t("filter_kind"), cell: (topic) => topic.filter },
      { head: t("partitions"), number: true, cell: (topic) => topic.partitions },
      {
        head: hourHead("published"),
        minor: true,
        cell: (topic) => hourLine(hours("topic", topic.name), "published"),
      },
      { head: t("description"), cell: (topic) => topic.description ?? "" },
    ],
    topics,
  );
}

function newTopic() {
  const place = outcome();
  const name = field(t("name"), {
    name: "topic",
    required: true,
    maxlength: 256,
    spellcheck: "false",
    autocomplete: "off",
  });
  const kind = field(
    t("filter_kind"),
    { name: "filter" },
    "select",
    ["tags", "routing_key"].map((each) => h("option", { value: each }, each)),
  );
  const submit = h("button", { type: "submit" }, t("topic.create"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(submit, place, async () => {
      const given = { filter: kind.input.value };
      const topic = await call("PUT", topicPath(name.input.value.trim()), given, { exact: true });
      location.hash = `/topics/${encodeURIComponent(topic.name)}`;
    });
  };
  return h(
    "details",
    {},
    h("summary", {}, t("topic.new")),
    h("form", { class: "inline", onsubmit }, name.row, kind.row, submit),
    place.element,
  );
}
