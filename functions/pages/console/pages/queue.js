// One queue: its figures now, and a tab for each kind of work.

import { call, get, listAll, queuePath } from "../api.js";
import { h, replace } from "../dom.js";
import { attributesForm } from "../forms.js";
import { counted, countedAll, duration, number, plain, time } from "../format.js";
import { t } from "../i18n.js";
import { drawLive, readLive } from "../live_rates.js";
import { pastHours } from "../past_hours.js";
import { drawHour, givenUpBadge, lastHours } from "../rates.js";
import { fieldsOf } from "../schema.js";
import { breakerBadge } from "../subscriptions.js";
import { badge, button, confirm, facts, section, tabs, tiles } from "../ui.js";
import { deadLettersTab } from "./queue_dead_letters.js";
import { messagesTab } from "./queue_messages.js";
import { receiversTab } from "./queue_receivers.js";
import { sendTab } from "./queue_send.js";
import { workTab } from "./queue_work.js";
import { grantsPanel } from "../grants.js";

const SECONDS = 5;
const FIXED = ["ordered", "fair", "priorities"];
const RATES = ["sent", "received", "deleted"];
const TABS = {
  now: nowTab,
  send: sendTab,
  messages: messagesTab,
  dead: deadLettersTab,
  attributes: attributesTab,
  receivers: receiversTab,
  grants: async (queue) => ({ element: await grantsPanel(queuePath(queue.name), "GrantRequest") }),
  work: workTab,
};

export async function queuePage(place) {
  const [name, chosen = "now"] = place.parts;
  const tab = chosen in TABS ? chosen : "now";
  const queue = await get(queuePath(name));
  const made = await TABS[tab](queue, place);
  const base = `#/queues/${encodeURIComponent(name)}`;
  const parts = Object.keys(TABS).map((each) => [each, t(`queue.tab.${each}`)]);
  const element = h("div", {}, tabs(t("queue.parts"), base, parts, tab), made.element);
  return { ...made, title: queue.name, element };
}

async function nowTab(queue) {
  const figures = h("div");
  const seconds = h("div");
  const drawn = h("div");
  const told = h("div");
  const refresh = async () => {
    const [read, hours] = await Promise.all([
      get(queuePath(queue.name)),
      lastHours({ queues: [queue.name] }),
      readLive("queue", queue.name, SECONDS),
    ]);
    const { counts } = read;
    const hour = hours("queue", queue.name);
    const lost = givenUpBadge(hour, read.dead_letter?.queue);
    replace(
      figures,
      tiles([
        [t("backlog"), counted(counts, "active")],
        [t("in_flight"), counted(counts, "inactive")],
        [t("delayed"), counted(counts, "delayed")],
        [t("rewindable"), counted(counts, "rewindable")],
        [t("oldest"), duration(counts.oldest_active_age_seconds)],
        ...(read.breaker_state === "open"
          ? [[t("breaker.since"), time(read.breaker_open_since)]]
          : []),
        ...(lost ? [[t("given_up"), lost]] : []),
        ...Object.entries(counts.active_by_priority ?? {})
          .sort(([one], [other]) => other - one)
          .map(([level, count]) => [`${t("priority")} ${level}`, number(count)]),
      ]),
    );
    replace(seconds, drawLive("queue", queue.name, RATES, SECONDS));
    replace(drawn, drawHour(hour, RATES));
    const paused = read.paused ? badge(t("state.paused"), "waiting") : null;
    replace(told, paused, breakerBadge(read), summary(read));
  };
  const element = h(
    "div",
    {},
    figures,
    section(t("live_rates.title"), seconds),
    section(t("counts.title"), drawn, pastHours("queues", queue.name, RATES)),
    section(t("queue.summary"), told),
    deletion(queue),
  );
  return { element, refresh, seconds: SECONDS };
}

function summary(queue) {
  const { counts: _, name, id, created_at, modified_at, ...attributes } = queue;
  return facts([
    ...Object.entries(attributes).map(([key, value]) => [
      key,
      key.endsWith("_seconds") ? duration(value) : plain(value),
    ]),
    ["created_at", time(created_at)],
    ["modified_at", time(modified_at)],
    ["id", id],
  ]);
}

async function attributesTab(queue, { open }) {
  const all = await fieldsOf("QueueInputChange");
  const fields = Object.fromEntries(Object.entries(all).filter(([name]) => !isFixed(name, queue)));
  const send = async (changed, told) => {
    if (!Object.keys(changed).length) return told.good(t("form.unchanged"));
    await call("PATCH", queuePath(queue.name), changed);
    open();
  };
  return {
    element: section(
      t("queue.tab.attributes"),
      h("p", { class: "quiet" }, t("form.fixed", { names: fixedOf(queue) })),
      attributesForm(fields, queue, t("save"), send),
    ),
  };
}

const isFixed = (name, queue) =>
  FIXED.includes(name) || (name === "partitions" && queue.ordered) ||
  (["max_in_flight", "rate"].includes(name) && !queue.fair) ||
  (name === "ageing_seconds" && queue.priorities === null);

const fixedOf = (queue) =>
  [...FIXED, ...(queue.ordered ? ["partitions"] : [])]
    .map((name) => `${name}: ${plain(queue[name])}`)
    .join(", ");

function deletion(queue) {
  const remove = async () => {
    const { counts } = await get(queuePath(queue.name));
    const receivers = await listAll(queuePath(queue.name, "/receivers"), "receivers", 100);
    const text = t("queue.delete.text", {
      name: queue.name,
      messages: countedAll(counts),
      receivers: receivers.length,
    });
    if (!(await confirm(t("queue.delete"), text, t("queue.delete.agree", { name: queue.name }))))
      return;
    await call("DELETE", queuePath(queue.name));
    location.hash = "/overview";
  };
  const failed = h("div", { role: "alert" });
  const start = () =>
    remove().catch((error) => replace(failed, h("p", { class: "bad" }, error.message)));
  return h("div", { class: "end" }, button(t("queue.delete"), start, "danger"), failed);
}
