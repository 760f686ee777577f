// A table of queues with what waits in each, and the form that makes one.

import { call, queuePath } from "./api.js";
import { h } from "./dom.js";
import { field } from "./forms.js";
import { counted, duration } from "./format.js";
import { t } from "./i18n.js";
import { givenUp, givenUpBadge, hourHead, hourLine } from "./rates.js";
import { act, badge, outcome, table } from "./ui.js";

/**
 * `failing`: names of the queues that hold dead letters; these are first, then queues that gave
 * messages up in the last hour.
 */
export function queueTable(queues, hours, failing) {
  const hourOf = (queue) => hours("queue", queue.name);
  const rank = (queue) => 2 * failing.has(queue.name) + (givenUp(hourOf(queue)) > 0);
  const sorted = [...queues].sort((one, other) => rank(other) - rank(one));
  // The column that is empty on most days would push the others out of a narrow window.
  const state = {
    head: t("state"),
    cell: (queue) =>
      h(
        "span",
        {},
        failing.has(queue.name) && badge(t("dead_letters"), "bad"),
        " ",
        givenUpBadge(hourOf(queue), queue.dead_letter?.queue),
      ),
  };
  return table(
    t("queues"),
    [
      {
        head: t("queue"),
        cell: (queue) =>
          h("a", { href: `#/queues/${encodeURIComponent(queue.name)}` }, queue.name),
      },
      ...(queues.some(rank) ? [state] : []),
      { head: t("backlog"), number: true, cell: (queue) => counted(queue.counts, "active") },
      { head: t("in_flight"), number: true, cell: (queue) => counted(queue.counts, "inactive") },
      { head: t("delayed"), number: true, cell: (queue) => counted(queue.counts, "delayed") },
      {
        head: t("oldest"),
        number: true,
        cell: (queue) => duration(queue.counts.oldest_active_age_seconds),
      },
      ...["sent", "kept"].map((kind) => ({
        head: hourHead(kind),
        minor: true,
        cell: (queue) => hourLine(hourOf(queue), kind),
      })),
    ],
    sorted,
  );
}

/** A form that makes a queue with its defaults, and goes to its page. */
export function newQueue() {
  const place = outcome();
  const name = field(t("name"), {
    name: "queue",
    required: true,
    maxlength: 80,
    spellcheck: "false",
    autocomplete: "off",
  });
  const submit = h("button", { type: "submit" }, t("queue.create"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(submit, place, async () => {
      const queue = await call("PUT", queuePath(name.input.value.trim()), {}, { exact: true });
      location.hash = `/queues/${encodeURIComponent(queue.name)}`;
    });
  };
  return h(
    "details",
    {},
    h("summary", {}, t("queue.new")),
    h("form", { class: "inline", onsubmit }, name.row, submit),
    place.element,
  );
}
