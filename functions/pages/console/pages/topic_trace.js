// The trace of a message as a timeline: published, handed out, and how it went at each subscription.

import { get, topicPath } from "../api.js";
import { h, replace } from "../dom.js";
import { field } from "../forms.js";
import { number, time } from "../format.js";
import { t, translated } from "../i18n.js";
import { messageCard } from "../messages.js";
import { act, badge, outcome, section } from "../ui.js";

const TONES = { delivered: "good", pending: "waiting", retrying: "bad", dead: "bad", discarded: "bad" };
const SECONDS = 5;

export async function traceTab(topic, { query, live }) {
  const place = outcome();
  const result = h("div");
  const id = field(t("message.id"), { required: true, placeholder: "Msg-…", value: query.get("id") ?? "", spellcheck: "false", autocomplete: "off" });
  const trigger = h("button", { type: "submit", class: "main" }, t("trace"));
  let wanted = query.get("id") ?? "";
  const refresh = async () => {
    if (!wanted) return;
    const trace = await get(topicPath(topic.name, `/messages/${encodeURIComponent(wanted)}`), { body: true });
    replace(result, timeline(trace), trace.message && messageCard(trace.message));
  };
  const onsubmit = (event) => {
    event.preventDefault();
    wanted = id.input.value.trim();
    replace(result);
    act(trigger, place, live.now.bind(live));
  };
  const element = section(t("topic.tab.trace"), h("p", { class: "quiet" }, t("trace.text")),
    h("form", { class: "inline", onsubmit }, id.row, trigger), place.element, result);
  return { element, refresh, seconds: SECONDS };
}

function timeline(trace) {
  return h(
    "ol",
    { class: "timeline" },
    h("li", {}, h("strong", {}, t("trace.published")), " ", h("time", {}, time(trace.sent_at))),
    h("li", {}, h("strong", {}, t("trace.fanned_out", { count: trace.deliveries.length }))),
    trace.deliveries.map((each) => h("li", { class: TONES[each.state] },
      h("strong", {}, each.subscription), " ", badge(translated("delivery", each.state), TONES[each.state]), " ",
      t("trace.attempts", { attempts: number(each.attempts) }),
      each.last_error && h("p", { class: "bad" }, t("last_error"), ": ", each.last_error),
      each.next_attempt_at && h("p", {}, t("next_attempt"), ": ", h("time", {}, time(each.next_attempt_at))),
      each.dead_letter_queue && h("p", {}, t("dead.in"), " ",
        h("a", { href: `#/queues/${encodeURIComponent(each.dead_letter_queue)}/dead` }, each.dead_letter_queue)))),
  );
}
