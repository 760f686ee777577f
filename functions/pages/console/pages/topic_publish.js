// Publishing: who would get the message is seen before it is sent, filter by filter.

import { listAll, post, topicPath } from "../api.js";
import { h } from "../dom.js";
import { t } from "../i18n.js";
import { messageFields } from "../message_form.js";
import { act, badge, button, outcome, section, table } from "../ui.js";

const MOST = 100;

export async function publishTab(topic) {
  const place = outcome();
  const fields = messageFields({ routed: topic.filter === "routing_key" });
  const body = () => ({ messages: [fields.read()] });
  const match = async () => {
    const { delay_seconds: _, ...message } = fields.read();
    const [answer, listed] = await Promise.all([
      post(topicPath(topic.name, "/match"), { messages: [message] }),
      listAll(topicPath(topic.name, "/subscriptions"), "subscriptions", MOST),
    ]);
    place.say(matches(answer.messages[0].subscriptions, listed));
  };
  const publish = async () => {
    const {
      messages: [{ id, matched }],
    } = await post(topicPath(topic.name, "/messages"), body());
    place.say(
      h(
        "p",
        { class: matched ? "good" : "bad" },
        t(matched ? "publish.done" : "publish.nobody", { matched }),
        " ",
        h(
          "a",
          { href: `#/topics/${encodeURIComponent(topic.name)}/trace?id=${id}` },
          h("code", {}, id),
        ),
      ),
    );
  };
  const trial = button(t("match"), () => form.reportValidity() && act(trial, place, match));
  const submit = h("button", { type: "submit", class: "main" }, t("publish"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(submit, place, publish);
  };
  const form = h(
    "form",
    { onsubmit },
    fields.element,
    h("div", { class: "buttons" }, trial, submit),
    place.element,
  );
  return { element: section(t("publish"), h("p", { class: "quiet" }, t("match.text")), form) };
}

/** Each subscription's filter, and whether the message passes it. */
function matches(found, listed) {
  const paused = new Map(found.map((each) => [each.name, each.paused]));
  const rows = listed.map((each) => ({ ...each, gets: paused.has(each.name) }));
  rows.sort((one, other) => other.gets - one.gets);
  return h(
    "div",
    {},
    h("p", {}, t("match.done", { matched: found.length, all: listed.length })),
    table(
      t("match"),
      [
        { head: t("subscription"), cell: (each) => each.name },
        {
          head: t("match.gets"),
          cell: (each) => badge(t(each.gets ? "yes" : "no"), each.gets ? "good" : ""),
        },
        {
          head: t("filter"),
          cell: (each) =>
            h("code", {}, each.filter ? JSON.stringify(each.filter) : t("filter.all")),
        },
        {
          head: t("state"),
          cell: (each) => (paused.get(each.name) ? badge(t("state.paused"), "waiting") : ""),
        },
      ],
      rows,
    ),
  );
}
