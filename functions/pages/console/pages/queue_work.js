// Purge and rewind: what will happen is said before, and how far it is meanwhile.

import { get, listAll, post, queuePath } from "../api.js";
import { h } from "../dom.js";
import { field } from "../forms.js";
import { counted, duration, time } from "../format.js";
import { t } from "../i18n.js";
import { follow } from "../progress.js";
import { act, button, confirm, outcome, section } from "../ui.js";

export async function workTab(queue) {
  return { element: h("div", {}, purge(queue), rewind(queue)) };
}

function purge(queue) {
  const place = outcome();
  const progress = h("div");
  const work = async () => {
    const { counts } = await get(queuePath(queue.name));
    const receivers = await listAll(queuePath(queue.name, "/receivers"), "receivers", 100);
    const text = t("purge.confirm", {
      name: queue.name,
      receivers: receivers.length,
      active: counted(counts, "active"),
      inactive: counted(counts, "inactive"),
      delayed: counted(counts, "delayed"),
      rewindable: counted(counts, "rewindable"),
    });
    if (!(await confirm(t("purge"), text, t("purge.agree", { name: queue.name })))) return;
    const { operation } = await post(queuePath(queue.name, "/purge"));
    await follow(operation, t("purge.about", { name: queue.name }), progress);
  };
  const trigger = button(t("purge"), () => act(trigger, place, work), "danger");
  return section(t("purge"), h("p", {}, t("purge.text")), trigger, place.element, progress);
}

function rewind(queue) {
  if (!queue.rewind_seconds) {
    return section(
      t("rewind"),
      h(
        "p",
        {},
        t("rewind.off"),
        " ",
        h("a", { href: `#/queues/${encodeURIComponent(queue.name)}/attributes` }, "rewind_seconds"),
      ),
    );
  }
  const place = outcome();
  const progress = h("div");
  const to = field(t("rewind.to"), {
    type: "datetime-local",
    step: 1,
    required: true,
    value: local(Date.now() - Math.min(3_600, queue.rewind_seconds / 2) * 1_000),
  });
  const trigger = h("button", { type: "submit", class: "danger" }, t("rewind"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(trigger, place, async () => {
      const at = new Date(to.input.value).toISOString();
      const { counts } = await get(queuePath(queue.name));
      const text = t("rewind.confirm", {
        name: queue.name,
        time: time(at),
        rewindable: counted(counts, "rewindable"),
      });
      if (!(await confirm(t("rewind"), text, t("rewind.agree", { name: queue.name })))) return;
      const { operation } = await post(queuePath(queue.name, "/rewind"), { to: at });
      await follow(operation, t("rewind.about", { name: queue.name, time: time(at) }), progress);
    });
  };
  return section(
    t("rewind"),
    h("p", {}, t("rewind.text", { window: duration(queue.rewind_seconds) })),
    h("form", { class: "inline", onsubmit }, to.row, trigger),
    place.element,
    progress,
  );
}

/** A time as a field of the reader's zone takes it. */
function local(ms) {
  const at = new Date(ms);
  return new Date(ms - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
