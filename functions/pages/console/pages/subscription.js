// One subscription: its state, its ladder, and what can be changed.

import { call, get, post, subscriptionPath as path } from "../api.js";
import { consumersSection } from "../consumers.js";
import { h, replace } from "../dom.js";
import { failedAnswers } from "../failed_answers.js";
import { attributesForm, field } from "../forms.js";
import { counted, countedAll, duration, number, plain, time } from "../format.js";
import { t } from "../i18n.js";
import { follow } from "../progress.js";
import { drawLive, readLive } from "../live_rates.js";
import { pastHours } from "../past_hours.js";
import { drawHour, givenUpBadge, lastHours } from "../rates.js";
import { retryButtons, retryFigures } from "../retry_actions.js";
import { fieldsOf } from "../schema.js";
import { breakerBadge, namesOf, stateBadge } from "../subscriptions.js";
import { act, button, confirm, facts, outcome, section, showDialog, tiles } from "../ui.js";
import { receiving } from "./queue_messages.js";

const SECONDS = 5;
const SHOWN_ABOVE = [
  "counts",
  "retry_in_force",
  "state",
  "oldest_active_age_seconds",
  "next_attempt_at",
  "last_error",
  "failed_answers",
];
const OF_URL = ["delivered", "attempts"];
const OF_GROUP = ["delivered", "received", "deleted"];
const FIXED = ["protocol", "endpoint", "mode", "ordered", "start"];

export async function subscriptionPage({ parts, live }) {
  const [topic, name] = parts;
  const full = `${topic}/${name}`;
  const first = await get(path(topic, name));
  const place = outcome();
  const kinds = first.protocol === "http" ? OF_URL : OF_GROUP;
  const figures = h("div");
  const seconds = h("div");
  const drawn = h("div");
  const buttons = h("div");
  const answers = h("div");
  let shown;
  const told = h("div");
  const refresh = async () => {
    const [held, hours] = await Promise.all([
      get(path(topic, name)),
      lastHours({ subscriptions: namesOf([first]) }),
      first.counts && readLive("subscription", full, SECONDS),
    ]);
    if (first.counts) replace(seconds, drawLive("subscription", full, kinds, SECONDS));
    const hour = hours("subscription", full);
    const lost = givenUpBadge(hour, held.dead_letter_queue);
    replace(drawn, drawHour(hour, kinds));
    replace(
      figures,
      tiles([
        [t("state"), h("span", {}, stateBadge(held.state), " ", breakerBadge(held))],
        ...(held.breaker_state === "open"
          ? [[t("breaker.since"), time(held.breaker_open_since)]]
          : []),
        ...(lost ? [[t("given_up"), lost]] : []),
        ...(held.counts
          ? [
              [t("backlog"), counted(held.counts, "active")],
              [t("in_flight"), counted(held.counts, "inactive")],
              [t("delayed"), counted(held.counts, "delayed")],
              [t("oldest"), duration(held.oldest_active_age_seconds)],
            ]
          : []),
      ]),
      retryFigures(held),
    );
    const news = JSON.stringify(held.failed_answers ?? null);
    // Drawn anew only if there is news: what was opened stays open.
    if (news !== shown) replace(answers, failedAnswers(held));
    shown = news;
    if (!buttons.contains(document.activeElement))
      replace(
        buttons,
        retryButtons(held, place, () => live.now()),
      );
    replace(told, summary(held));
  };
  const pulls = first.protocol === "pull" && first.mode === "clustering";
  const element = h(
    "div",
    {},
    h("p", {}, h("a", { href: `#/topics/${encodeURIComponent(topic)}` }, topic)),
    section(t("subscription.delivery"), figures, buttons, place.element),
    answers,
    first.counts && section(t("live_rates.title"), seconds),
    first.counts && section(t("counts.title"), drawn, pastHours("subscriptions", full, kinds)),
    pulls && section(t("receive"), receiving(path(topic, name, "/messages"), [""])),
    pulls && consumersSection(path(topic, name, "/consumers")),
    pulls && rewinding(topic, name),
    section(t("queue.summary"), told),
    await changing(first, live),
    h(
      "div",
      { class: "end" },
      first.protocol === "http" && secretButton(topic, name, place),
      removal(first, place),
    ),
  );
  return { title: `${topic} / ${name}`, element, refresh, seconds: SECONDS };
}

function summary(held) {
  const attributes = Object.entries(held).filter(([key]) => !SHOWN_ABOVE.includes(key));
  return facts(
    attributes.map(([key, value]) => [key, key.endsWith("_at") ? time(value) : plain(value)]),
  );
}

async function changing(held, live) {
  const all = await fieldsOf("SubscriptionInputChange");
  const mine = Object.entries(all).filter(([name]) => !FIXED.includes(name) && name in held);
  const form = attributesForm(Object.fromEntries(mine), held, t("save"), async (changed, told) => {
    if (!Object.keys(changed).length) return told.good(t("form.unchanged"));
    Object.assign(held, await call("PATCH", path(held.topic, held.name), changed));
    told.good(t("done"));
    await live.now();
  });
  return h("details", {}, h("summary", {}, t("subscription.change")), form);
}

function rewinding(topic, name) {
  const place = outcome();
  const progress = h("div");
  const to = field(t("rewind.to"), { type: "datetime-local", step: 1, required: true });
  const trigger = h("button", { type: "submit", class: "danger" }, t("rewind"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(trigger, place, async () => {
      const at = new Date(to.input.value).toISOString();
      const text = t("rewind.group.confirm", { name: `${topic} / ${name}`, time: time(at) });
      if (!(await confirm(t("rewind"), text, t("rewind.agree", { name })))) return;
      const { operation } = await post(path(topic, name, "/rewind"), { to: at });
      await follow(operation, t("rewind.about", { name, time: time(at) }), progress);
    });
  };
  return section(
    t("rewind"),
    h("form", { class: "inline", onsubmit }, to.row, trigger),
    place.element,
    progress,
  );
}

function secretButton(topic, name, place) {
  const trigger = button(t("subscription.secret"), () =>
    act(trigger, place, async () => {
      const { secret } = await post(path(topic, name, "/secret"));
      showDialog(
        t("subscription.secret"),
        h("p", {}, t("subscription.secret.text")),
        h("pre", {}, secret),
      );
    }),
  );
  return trigger;
}

function removal(held, place) {
  const trigger = button(
    t("unsubscribe"),
    () =>
      act(trigger, place, async () => {
        const text = t("unsubscribe.text", {
          name: held.name,
          topic: held.topic,
          messages: held.counts ? countedAll(held.counts) : number(0),
        });
        if (!(await confirm(t("unsubscribe"), text, t("unsubscribe")))) return;
        await call("DELETE", path(held.topic, held.name));
        location.hash = `/topics/${encodeURIComponent(held.topic)}`;
      }),
    "danger",
  );
  return trigger;
}
