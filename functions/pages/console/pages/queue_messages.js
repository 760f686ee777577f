// Messages of a queue: looked at without claiming, found by id, or received and settled.

import { Refused, get, listAll, post, queuePath } from "../api.js";
import { h, replace } from "../dom.js";
import { checkbox, field, readNumber } from "../forms.js";
import { number } from "../format.js";
import { t, translated } from "../i18n.js";
import { BOUND, lookThrough } from "../message_search.js";
import { messageCard } from "../messages.js";
import { act, badge, button, facts, outcome, section } from "../ui.js";

const MOST = 16;
const STATES = ["active", "inactive", "delayed"];
const ORDERS = ["oldest", "newest"];

export async function messagesTab(queue, { query }) {
  const receivers = await listAll(queuePath(queue.name, "/receivers"), "receivers", 100);
  const sources = ["", ...receivers.map((receiver) => receiver.name)];
  const element = h(
    "div",
    {},
    section(t("peek"), peeking(queue)),
    section(t("receive"), receiving(queuePath(queue.name, "/messages"), sources)),
    section(t("lookup"), lookingUp(queue, sources, query.get("id") ?? "")),
  );
  return { element };
}

function peeking(queue) {
  const place = outcome();
  const list = h("div");
  const form = searchFields();
  let cursor;
  let seen = 0;
  const look = async () => {
    const wanted = form.read();
    const answer = await lookThrough(queue.name, wanted, cursor);
    cursor = answer.cursor;
    seen += answer.seen;
    replace(
      list,
      answer.found.map((message) => messageCard(message)),
    );
    const told = { found: answer.found.length, seen };
    const text = !seen ? "messages.none" : cursor ? "search.more" : "search.end";
    place.say(h("p", { class: "quiet" }, t(text, told)));
    more.hidden = !cursor;
  };
  const trigger = h("button", { type: "submit", class: "main" }, t("peek"));
  const more = button(t("search.on"), () => act(more, place, look));
  more.hidden = true;
  const onsubmit = (event) => {
    event.preventDefault();
    cursor = undefined;
    seen = 0;
    act(trigger, place, look);
  };
  return h(
    "div",
    {},
    h("p", { class: "quiet" }, t("peek.text", { bound: BOUND })),
    h("form", { class: "inline", onsubmit }, form.rows, trigger, more),
    place.element,
    list,
  );
}

function searchFields() {
  const options = (prefix, names) =>
    names.map((name) => h("option", { value: name }, t(`${prefix}.${name}`)));
  const state = field(t("state"), {}, "select", options("message_state", STATES));
  const text = field(t("search.text"), { type: "search", maxlength: 256, spellcheck: "false" });
  const from = field(t("search.from"), { type: "datetime-local", step: 1 });
  const to = field(t("search.to"), { type: "datetime-local", step: 1 });
  const order = field(t("search.order"), {}, "select", options("search.order", ORDERS));
  const moment = ({ input }) => (input.value ? Date.parse(input.value) : undefined);
  return {
    rows: [state, text, from, to, order].map((each) => each.row),
    read: () => ({
      state: state.input.value,
      text: text.input.value.trim(),
      from: moment(from),
      to: moment(to),
      newest: order.input.value === "newest",
    }),
  };
}

/** Receiving from a queue, a receiver of it (`sources`), or a group of a topic. */
export function receiving(path, sources) {
  const place = outcome();
  const list = h("div");
  const max = field(t("receive.max"), { type: "number", min: 1, max: MOST, value: 1 });
  const lease = field(t("receive.lease"), { type: "number", min: 1, max: 43_200, value: 30 });
  const source = field(
    t("receiver"),
    { name: "receiver" },
    "select",
    sources.map((name) => h("option", { value: name }, name || t("queue.itself"))),
  );
  const trigger = h("button", { type: "submit", class: "main" }, t("receive"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(trigger, place, async () => {
      const answer = await post(`${path}/receive`, {
        max: readNumber(max.input.value) ?? 1,
        wait_seconds: 1,
        visibility_timeout_seconds: readNumber(lease.input.value),
        receiver: source.input.value || undefined,
      });
      replace(
        list,
        answer.messages.map((message) => held(path, message, place)),
      );
      if (!answer.messages.length) place.say(h("p", { class: "quiet" }, t("messages.none")));
    });
  };
  return h(
    "div",
    {},
    h("p", { class: "quiet" }, t("receive.text")),
    h(
      "form",
      { class: "inline", onsubmit },
      max.row,
      lease.row,
      sources.length > 1 && source.row,
      trigger,
    ),
    place.element,
    list,
  );
}

/** A received message with what may be done with it; gone from the page when it is settled. */
function held(path, message, place) {
  const settle = (call, more, text) => async () => {
    const answer = await post(`${path}/${call}`, { receipts: [message.receipt], ...more });
    const failed = answer.failed[0];
    if (failed) throw new Refused(409, failed);
    place.good(t(text, { id: message.id }));
    card.remove();
  };
  const longer = async () => {
    const entries = [{ receipt: message.receipt, visibility_timeout_seconds: 300 }];
    const answer = await post(`${path}/visibility`, { entries });
    if (answer.failed[0]) throw new Refused(409, answer.failed[0]);
    place.good(t("settle.longer.done", { id: message.id }));
  };
  const action = (text, work) => {
    const trigger = button(text, () => act(trigger, place, work), "small");
    return trigger;
  };
  const card = messageCard(
    message,
    h(
      "div",
      { class: "buttons" },
      action(t("settle.delete"), settle("delete", {}, "settle.delete.done")),
      action(t("settle.give_back"), settle("give-back", {}, "settle.give_back.done")),
      action(t("settle.longer"), longer),
      action(t("settle.dead"), settle("dead-letter", { reason: "console" }, "settle.dead.done")),
    ),
  );
  return card;
}

function lookingUp(queue, sources, given) {
  const place = outcome();
  const result = h("div");
  const id = field(t("message.id"), {
    name: "id",
    required: true,
    value: given,
    placeholder: "Msg-…",
    spellcheck: "false",
    autocomplete: "off",
  });
  const source = field(
    t("receiver"),
    {},
    "select",
    sources.map((name) => h("option", { value: name }, name || t("queue.itself"))),
  );
  const group = field(t("group"), { maxlength: 128 });
  const withBody = checkbox(t("lookup.body"), { checked: true });
  const trigger = h("button", { type: "submit", class: "main" }, t("lookup"));
  const find = () =>
    act(trigger, place, async () => {
      replace(result);
      const found = await get(
        queuePath(queue.name, `/messages/${encodeURIComponent(id.input.value.trim())}`),
        {
          receiver: source.input.value,
          group: group.input.value,
          body: withBody.input.checked,
        },
      );
      const { message, state, bytes, others = [], ...times } = found;
      const known = facts([
        [t("state"), badge(translated("message_state", state))],
        [t("size"), `${number(bytes)} B`],
      ]);
      const cards = others.map((each) => messageCard({ ...each, ...message }));
      replace(result, known, messageCard({ ...times, ...message }), ...cards);
    });
  if (given) queueMicrotask(find);
  const onsubmit = (event) => {
    event.preventDefault();
    find();
  };
  const grouped = queue.ordered || queue.fair;
  return h(
    "div",
    {},
    h(
      "form",
      { class: "inline", onsubmit },
      id.row,
      sources.length > 1 && source.row,
      grouped && group.row,
      withBody.row,
      trigger,
    ),
    place.element,
    result,
  );
}
