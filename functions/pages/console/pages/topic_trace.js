// The trace of a message as a timeline: published, handed out, and how it went at each subscription.

import { each, get, listAll, post, subscriptionPath, topicPath } from "../api.js";
import { ladder } from "../charts.js";
import { h, replace } from "../dom.js";
import { field } from "../forms.js";
import { number, time } from "../format.js";
import { t, translated } from "../i18n.js";
import { messageCard } from "../messages.js";
import { holdsMessages, waitsOf } from "../retry_actions.js";
import { act, badge, button, confirm, facts, outcome, section } from "../ui.js";

const TONES = {
  delivered: "good",
  pending: "waiting",
  retrying: "bad",
  dead: "bad",
  discarded: "bad",
};
const SECONDS = 5;
const SUBSCRIPTIONS = 1_000;
/** Messages in these states may be delivered again: they are not on their way. */
const ENDED = ["delivered", "discarded", "dead"];

export async function traceTab(topic, { query, live }) {
  const place = outcome();
  const result = h("div");
  const id = field(t("message.id"), {
    required: true,
    placeholder: "Msg-…",
    value: query.get("id") ?? "",
    spellcheck: "false",
    autocomplete: "off",
  });
  const trigger = h("button", { type: "submit", class: "main" }, t("trace"));
  let wanted = query.get("id") ?? "";
  let holders;
  const refresh = async () => {
    if (!wanted) return;
    const trace = await get(topicPath(topic.name, `/messages/${encodeURIComponent(wanted)}`), {
      body: true,
    });
    const failing = trace.deliveries.filter((held) => held.state === "retrying");
    const subscriptions = await each(failing, (held) =>
      get(subscriptionPath(topic.name, held.subscription)),
    );
    const waits = new Map(
      failing.map((held, place) => [held.subscription, waitsOf(subscriptions[place])]),
    );
    holders ??= await holdersOf(topic);
    const again = (held) =>
      ENDED.includes(held.state) &&
      holders.has(held.subscription) &&
      deliverAgain(topic, held.subscription, trace.id, place, live);
    replace(
      result,
      trace.trace_id && facts([[t("trace.id"), h("code", {}, trace.trace_id)]]),
      timeline(trace, waits, again),
      trace.message && messageCard(trace.message),
    );
  };
  const onsubmit = (event) => {
    event.preventDefault();
    wanted = id.input.value.trim();
    replace(result);
    act(trigger, place, live.now.bind(live));
  };
  const element = section(
    t("topic.tab.trace"),
    h("p", { class: "quiet" }, t("trace.text")),
    h("form", { class: "inline", onsubmit }, id.row, trigger),
    place.element,
    result,
  );
  return { element, refresh, seconds: SECONDS };
}

/** Names of the subscriptions that hold messages: URLs and groups. */
async function holdersOf(topic) {
  const path = topicPath(topic.name, "/subscriptions");
  const listed = await listAll(path, "subscriptions", SUBSCRIPTIONS);
  return new Set(listed.filter(holdsMessages).map((each) => each.name));
}

function deliverAgain(topic, subscription, id, place, live) {
  const trigger = button(
    t("trace.again"),
    () =>
      act(trigger, place, async () => {
        const text = t("trace.again.text", { name: subscription });
        if (!(await confirm(t("trace.again"), text, t("trace.again")))) return;
        await post(subscriptionPath(topic.name, subscription, "/redeliver"), { ids: [id] });
        place.good(t("trace.again.done", { name: subscription }));
        await live.now();
      }),
    "small",
  );
  return trigger;
}

/**
 * `waits`: of the policies of those that are retried, by subscription. `again` has the button that
 * delivers once more to one, or false.
 */
function timeline(trace, waits, again) {
  return h(
    "ol",
    { class: "timeline" },
    h("li", {}, h("strong", {}, t("trace.published")), " ", h("time", {}, time(trace.sent_at))),
    h("li", {}, h("strong", {}, t("trace.fanned_out", { count: trace.deliveries.length }))),
    trace.deliveries.map((held) =>
      h(
        "li",
        { class: TONES[held.state] },
        h("strong", {}, held.subscription),
        " ",
        badge(translated("delivery", held.state), TONES[held.state]),
        " ",
        t("trace.attempts", { attempts: number(held.attempts) }),
        again(held),
        attempts(held),
        held.next_attempt_at &&
          h("p", {}, t("next_attempt"), ": ", h("time", {}, time(held.next_attempt_at))),
        waits.get(held.subscription)?.length > 0 &&
          ladder(waits.get(held.subscription), held.attempts),
        held.dead_letter_queue &&
          h(
            "p",
            {},
            t("dead.in"),
            " ",
            h(
              "a",
              { href: `#/queues/${encodeURIComponent(held.dead_letter_queue)}/dead` },
              held.dead_letter_queue,
            ),
          ),
      ),
    ),
  );
}

/** The latest attempts at a URL, each with its time and its own error; the last error of old ones. */
function attempts(held) {
  if (!held.history)
    return held.last_error && h("p", { class: "bad" }, t("last_error"), ": ", held.last_error);
  const values = { shown: number(held.history.length), attempts: number(held.attempts) };
  return [
    held.history.length < held.attempts && h("p", { class: "quiet" }, t("trace.latest", values)),
    h(
      "ol",
      { class: "attempts" },
      held.history.map((made) =>
        h(
          "li",
          {},
          t("trace.attempt", { number: number(made.number) }),
          " ",
          h("time", {}, time(made.at)),
          " ",
          made.error
            ? h("span", { class: "bad" }, made.error)
            : h("span", { class: "good" }, t("trace.taken", { status: made.status })),
        ),
      ),
    ),
  ];
}
