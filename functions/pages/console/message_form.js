// The fields of a message to send or to publish.

import { h } from "./dom.js";
import { field, readNumber, readPairs } from "./forms.js";
import { readList } from "./inputs.js";
import { t } from "./i18n.js";

const SAMPLE_BODY = "-";

/**
 * `options`: {routed, grouped, sample}: whether it has a routing key, must have a group, and has
 * only what filters look at.
 */
export function messageFields(options = {}) {
  const body = field(
    t("body"),
    { name: "body", rows: 6, required: true, spellcheck: "false" },
    "textarea",
  );
  const tags = field(t("tags"), { name: "tags", placeholder: "new, paid" });
  const routing = field(t("routing_key"), { name: "routing_key", placeholder: "orders.cn.paid" });
  const attributes = field(
    t("attributes"),
    { name: "attributes", rows: 2, placeholder: "region=shanghai", spellcheck: "false" },
    "textarea",
  );
  const delay = field(t("delay_seconds"), {
    name: "delay_seconds",
    type: "number",
    min: 0,
    max: 1_296_000,
  });
  const group = field(t("group"), { name: "group", maxlength: 128, required: options.grouped });
  const priority = field(t("priority"), {
    name: "priority",
    type: "number",
    min: 1,
    max: options.priorities ?? 1,
  });
  const rest = [
    options.routed ? routing.row : tags.row,
    ...(options.sample ? [] : [delay.row, group.row]),
    ...(options.priorities ? [priority.row] : []),
  ];
  return {
    element: h(
      "div",
      {},
      !options.sample && body.row,
      h("div", { class: "columns" }, rest),
      attributes.row,
    ),
    /** The message as the API takes it. */
    read() {
      const message = { body: options.sample ? SAMPLE_BODY : body.input.value };
      if (options.routed && routing.input.value) message.routing_key = routing.input.value.trim();
      if (!options.routed && tags.input.value.trim()) message.tags = readList(tags.input.value);
      if (attributes.input.value.trim()) message.attributes = readPairs(attributes.input.value);
      if (readNumber(delay.input.value) !== undefined)
        message.delay_seconds = Number(delay.input.value);
      if (readNumber(priority.input.value) !== undefined)
        message.priority = Number(priority.input.value);
      if (group.input.value) message.group = group.input.value;
      return message;
    },
  };
}
