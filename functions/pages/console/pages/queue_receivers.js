// Receivers of a queue that each get every message.

import { call, each, get, listAll, queuePath } from "../api.js";
import { consumersSection } from "../consumers.js";
import { h, replace } from "../dom.js";
import { attributesForm, field } from "../forms.js";
import { counted, countedAll, duration, plain } from "../format.js";
import { t } from "../i18n.js";
import { fieldsOf } from "../schema.js";
import { act, badge, button, confirm, empty, outcome, section, table } from "../ui.js";

const SECONDS = 15;

export async function receiversTab(queue, { live }) {
  const place = outcome();
  const list = h("div");
  const path = (name) => queuePath(queue.name, `/receivers/${encodeURIComponent(name)}`);
  const refresh = async () => {
    const { receivers } = await get(queuePath(queue.name, "/receivers"));
    const shown = await each(receivers, (receiver) => get(path(receiver.name)));
    replace(
      list,
      receivers.length
        ? draw(shown.filter((one) => one.counts))
        : empty(t("receivers.none"), `cirrusmq queue add-receiver ${queue.name} audit`),
    );
  };
  const draw = (receivers) =>
    table(
      t("queue.tab.receivers"),
      [
        { head: t("receiver"), cell: (one) => one.name },
        { head: t("start"), cell: (one) => (one.operation ? t("receiver.filling") : one.start) },
        { head: t("filter"), cell: (one) => plain(one.filter) },
        { head: t("state"), cell: (one) => (one.paused ? badge(t("state.paused"), "waiting") : "") },
        { head: t("backlog"), number: true, cell: (one) => counted(one.counts, "active") },
        { head: t("in_flight"), number: true, cell: (one) => counted(one.counts, "inactive") },
        {
          head: t("oldest"),
          number: true,
          cell: (one) => duration(one.counts.oldest_active_age_seconds),
        },
        {
          head: t("actions"),
          cell: (one) => {
            const make = (label, work, look) => {
              const trigger = button(label, () => act(trigger, place, work), look);
              return trigger;
            };
            return [
              make(t(one.paused ? "retry.resume" : "retry.pause"), () => turn(one), "small"),
              make(t("delete"), () => remove(one), "small danger"),
            ];
          },
        },
      ],
      receivers,
    );
  const turn = async (one) => {
    await call("PATCH", path(one.name), { paused: !one.paused });
    await live.now();
  };
  const remove = async (one) => {
    const text = t("receiver.delete.text", {
      name: one.name,
      messages: countedAll(one.counts),
    });
    if (!(await confirm(t("receiver.delete"), text, t("delete")))) return;
    await call("DELETE", path(one.name));
    await live.now();
  };
  const name = field(t("name"), { required: true, maxlength: 64, spellcheck: "false" });
  const form = attributesForm(
    await fieldsOf("ReceiverInput"),
    {},
    t("receiver.create"),
    async (given, told) => {
      await call("PUT", path(name.input.value.trim()), given, { exact: true });
      told.good(t("done"));
      await live.now();
    },
  );
  form.prepend(name.row);
  const known = await listAll(queuePath(queue.name, "/receivers"), "receivers", 100);
  const names = ["", ...known.map((one) => one.name)];
  const element = h(
    "div",
    {},
    section(
      t("queue.tab.receivers"),
      list,
      place.element,
      h("details", {}, h("summary", {}, t("receiver.new")), form),
    ),
    consumersSection(queuePath(queue.name, "/consumers"), names),
  );
  return { element, refresh, seconds: SECONDS };
}
