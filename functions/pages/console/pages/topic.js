// One topic: its subscriptions, and a tab for each kind of work.

import { call, get, listAll, topicPath } from "../api.js";
import { h, replace } from "../dom.js";
import { attributesForm, field } from "../forms.js";
import { counted, number } from "../format.js";
import { grantsPanel } from "../grants.js";
import { t } from "../i18n.js";
import { drawLive, readLive } from "../live_rates.js";
import { messageCard } from "../messages.js";
import { pastHours } from "../past_hours.js";
import { drawHour, lastHours } from "../rates.js";
import { fieldsOf } from "../schema.js";
import { namesOf, readStates, statesTable } from "../subscriptions.js";
import { act, button, confirm, empty, outcome, section, showDialog, tabs, tiles } from "../ui.js";
import { filterTab, trialButton } from "./topic_filter.js";
import { publishTab } from "./topic_publish.js";
import { traceTab } from "./topic_trace.js";

const MOST = 100;
const SECONDS = 10;
const PUBLISHED = ["published"];
const TABS = {
  subscriptions: subscriptionsTab,
  publish: publishTab,
  filter: filterTab,
  trace: traceTab,
  log: logTab,
  attributes: attributesTab,
  grants: async (topic) => ({
    element: await grantsPanel(topicPath(topic.name), "TopicGrantRequest"),
  }),
};

export async function topicPage(place) {
  const [name, chosen = "subscriptions"] = place.parts;
  const tab = chosen in TABS ? chosen : "subscriptions";
  const topic = await get(topicPath(name));
  const made = await TABS[tab](topic, place);
  const parts = Object.keys(TABS).map((each) => [each, t(`topic.tab.${each}`)]);
  const element = h(
    "div",
    {},
    tabs(t("topic.parts"), `#/topics/${encodeURIComponent(name)}`, parts, tab),
    made.element,
  );
  return { ...made, title: topic.name, element };
}

async function subscriptionsTab(topic, { live }) {
  const figures = h("div");
  const seconds = h("div");
  const drawn = h("div");
  const list = h("div");
  const refresh = async () => {
    const [read, { states }] = await Promise.all([
      get(topicPath(topic.name)),
      readStates([topic.name], MOST),
      readLive("topic", topic.name, SECONDS),
    ]);
    const hours = await lastHours({ topics: [topic.name], subscriptions: namesOf(states) });
    replace(seconds, drawLive("topic", topic.name, PUBLISHED, SECONDS));
    replace(drawn, drawHour(hours("topic", topic.name), PUBLISHED));
    replace(
      figures,
      tiles([
        [t("topic.under_way"), counted(read.counts, "active")],
        [t("subscriptions"), number(states.length)],
      ]),
    );
    replace(
      list,
      states.length
        ? statesTable(t("subscriptions"), states, hours)
        : empty(
            t("subscriptions.none"),
            `cirrusmq subscribe ${topic.name} printer --url https://example.com/`,
          ),
    );
  };
  const name = field(t("name"), {
    required: true,
    maxlength: 64,
    minlength: 3,
    spellcheck: "false",
  });
  const form = attributesForm(
    await fieldsOf("SubscriptionInput"),
    {},
    t("subscribe"),
    async (given, told) => {
      const made = await call(
        "PUT",
        topicPath(topic.name, `/subscriptions/${encodeURIComponent(name.input.value.trim())}`),
        given,
        { exact: true },
      );
      told.good(t("done"));
      if (made.secret)
        showDialog(
          t("subscription.secret"),
          h("p", {}, t("subscription.secret.text")),
          h("pre", {}, made.secret),
        );
      await live.now();
    },
  );
  form.prepend(name.row);
  const element = h(
    "div",
    {},
    figures,
    section(t("subscriptions"), list),
    h(
      "details",
      {},
      h("summary", {}, t("subscribe")),
      form,
      h("div", { class: "buttons" }, trialButton(topic, form)),
    ),
    section(t("live_rates.title"), seconds),
    section(t("counts.title"), drawn, pastHours("topics", topic.name, PUBLISHED)),
    deletion(topic),
  );
  return { element, refresh, seconds: SECONDS };
}

async function logTab(topic) {
  const list = h("div");
  const place = outcome();
  let after;
  const read = async () => {
    const page = await get(topicPath(topic.name, "/messages"), { after, limit: 16 });
    after = page.cursor;
    list.append(
      ...page.messages.map((message) =>
        messageCard(
          message,
          h(
            "a",
            { href: `#/topics/${encodeURIComponent(topic.name)}/trace?id=${message.id}` },
            t("topic.tab.trace"),
          ),
        ),
      ),
    );
    if (!page.messages.length) place.say(h("p", { class: "quiet" }, t("log.end")));
  };
  const more = button(t("log.more"), () => act(more, place, read));
  await read();
  return {
    element: section(
      t("topic.tab.log"),
      h("p", { class: "quiet" }, t("log.text")),
      list,
      place.element,
      more,
    ),
  };
}

async function attributesTab(topic, { open }) {
  const { filter: _, partitions: __, ...fields } = await fieldsOf("TopicInputChange");
  const form = attributesForm(fields, topic, t("save"), async (changed, told) => {
    if (!Object.keys(changed).length) return told.good(t("form.unchanged"));
    await call("PATCH", topicPath(topic.name), changed);
    open();
  });
  return { element: section(t("topic.tab.attributes"), form) };
}

function deletion(topic) {
  const place = outcome();
  const trigger = button(
    t("topic.delete"),
    () =>
      act(trigger, place, async () => {
        const held = await listAll(topicPath(topic.name, "/subscriptions"), "subscriptions", MOST);
        const text = t("topic.delete.text", { name: topic.name, subscriptions: held.length });
        if (
          !(await confirm(t("topic.delete"), text, t("queue.delete.agree", { name: topic.name })))
        )
          return;
        await call("DELETE", topicPath(topic.name));
        location.hash = "/topics";
      }),
    "danger",
  );
  return h("div", { class: "end" }, trigger, place.element);
}
