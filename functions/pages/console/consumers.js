// The access keys that received from a queue, a receiver or a group, and when last.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { field } from "./forms.js";
import { time } from "./format.js";
import { t } from "./i18n.js";
import { act, button, empty, outcome, section, table } from "./ui.js";

const LIMIT = 50;

/** A section that reads them once, and again when asked; `names`: receivers to choose from. */
export function consumersSection(path, names = [""]) {
  const place = outcome();
  const list = h("div");
  const receiver = field(
    t("receiver"),
    { onchange: () => read(again, false) },
    "select",
    names.map((name) => h("option", { value: name }, name || t("queue.itself"))),
  );
  const shown = { consumers: [], cursor: undefined };
  const read = (trigger, more) =>
    act(trigger, place, async () => {
      const cursor = more ? shown.cursor : undefined;
      const query = { receiver: receiver.input.value || undefined, limit: LIMIT, cursor };
      const page = await get(path, query);
      shown.consumers = more ? [...shown.consumers, ...page.consumers] : page.consumers;
      shown.cursor = page.cursor;
      replace(list, shown.consumers.length ? draw(shown.consumers) : empty(t("consumers.none")));
      further.hidden = !page.cursor;
    });
  const again = button(t("consumers.again"), () => read(again, false));
  const further = button(t("consumers.more"), () => read(further, true));
  further.hidden = true;
  read(again, false);
  return section(
    t("consumers"),
    h("p", { class: "quiet" }, t("consumers.text")),
    h("div", { class: "inline" }, names.length > 1 && receiver.row, again),
    place.element,
    list,
    further,
  );
}

function draw(consumers) {
  return table(
    t("consumers"),
    [
      {
        head: t("key.id"),
        cell: (one) =>
          one.access_key_id ? h("code", {}, one.access_key_id) : t("consumers.other"),
      },
      { head: t("account"), cell: (one) => one.account },
      { head: t("consumers.at"), cell: (one) => time(one.last_received_at) },
    ],
    consumers,
  );
}
