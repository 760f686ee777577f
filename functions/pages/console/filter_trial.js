// A filter that is tried on a message before a subscription has it.

import { post, topicPath } from "./api.js";
import { h } from "./dom.js";
import { field } from "./forms.js";
import { readJson, readList } from "./inputs.js";
import { t } from "./i18n.js";
import { messageFields } from "./message_form.js";
import { act, badge, button, outcome } from "./ui.js";

const WHOLE = "json";
const PLACEHOLDERS = {
  tags: "new, paid",
  tag_expression: "new || paid",
  binding_keys: "orders.*.paid, orders.#",
  policy: '{"region": ["eu", {"prefix": "us-"}], "amount": [{"numeric": [">=", 100]}]}',
  body_policy: '{"kind": ["sold"], "item": {"price": [{"numeric": [">=", 100]}]}}',
  sql: "amount > 100 AND region = 'cn'",
  [WHOLE]: '{"tags": ["paid"], "sql": "amount > 100"}',
};
const MEMBERS = {
  tags: ["tags", "tag_expression", "policy", "body_policy", "sql", WHOLE],
  routing_key: ["binding_keys", "policy", "body_policy", "sql", WHOLE],
};

/**
 * A form that tries filters for a topic. `given`: the JSON of the filter to begin with, if any;
 * `use(filter)` takes one that the service accepted, where somebody wants it.
 */
export function filterTrial(topic, { given = "", use } = {}) {
  const place = outcome();
  const members = MEMBERS[topic.filter];
  const options = members.map((each) =>
    h("option", { value: each }, each === WHOLE ? t("filter.whole") : each),
  );
  const member = field(
    t("filter.member"),
    { value: given ? WHOLE : members[0], onchange: () => hint() },
    "select",
    options,
  );
  const value = field(
    t("filter.value"),
    { rows: 2, required: true, spellcheck: "false", value: given },
    "textarea",
  );
  const hint = () => value.input.setAttribute("placeholder", PLACEHOLDERS[member.input.value]);
  hint();
  const sample = messageFields({ routed: topic.filter === "routing_key", sample: true });
  const submit = h("button", { type: "submit", class: "main" }, t("filter.try.submit"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(submit, place, async () => {
      const filter = read(member.input.value, value.input.value);
      const body = { messages: [sample.read()], filter };
      const { messages } = await post(topicPath(topic.name, "/match"), body);
      place.say(told(messages[0], filter, use));
    });
  };
  return h(
    "form",
    { onsubmit },
    member.row,
    value.row,
    h("fieldset", {}, h("legend", {}, t("filter.sample")), sample.element),
    place.element,
    h("div", { class: "buttons" }, submit),
  );
}

/** The filter as the service takes it. */
function read(member, text) {
  if (member === WHOLE) return readJson(text, "filter");
  if (member.endsWith("policy")) return { [member]: readJson(text, member) };
  const isList = member === "tags" || member === "binding_keys";
  return { [member]: isList ? readList(text) : text.trim() };
}

function told(message, filter, use) {
  return [
    h(
      "p",
      {},
      badge(t(message.passes ? "filter.passes" : "filter.stops"), message.passes ? "good" : "bad"),
      message.why_not && `: ${message.why_not}`,
    ),
    h("p", {}, h("code", { class: "break" }, JSON.stringify(filter))),
    use && button(t("filter.use"), () => use(filter)),
  ];
}
