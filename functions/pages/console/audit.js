// The audit: which key changed what, the newest first, some at a time.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { field } from "./forms.js";
import { time } from "./format.js";
import { t } from "./i18n.js";
import { act, button, empty, outcome, section, table } from "./ui.js";

const LIMIT = 50;

/** The section of the account's changes, and a function that reads them. */
export function auditSection() {
  const place = outcome();
  const list = h("div");
  const word = { spellcheck: "false", autocomplete: "off", maxlength: 200 };
  const key = field(t("key.id"), word);
  const resource = field(t("audit.resource"), word);
  const from = field(t("audit.from"), { type: "datetime-local" });
  const to = field(t("audit.to"), { type: "datetime-local" });
  const submit = h("button", { type: "submit" }, t("audit.show"));
  const older = button(t("audit.older"), () => read(older, true));
  const shown = { changes: [], cursor: undefined, query: {} };

  const read = (trigger, more = false) =>
    act(trigger, place, async () => {
      if (!more) {
        shown.query = {
          key_id: key.input.value.trim(),
          resource: resource.input.value.trim(),
          from: moment(from.input.value),
          to: moment(to.input.value),
        };
      }
      const cursor = more ? shown.cursor : undefined;
      const page = await get("/audit", { ...shown.query, limit: LIMIT, cursor });
      shown.changes = more ? [...shown.changes, ...page.changes] : page.changes;
      shown.cursor = page.cursor;
      replace(list, shown.changes.length ? changesTable(shown.changes) : none(page.cursor));
      older.hidden = !page.cursor;
    });
  const onsubmit = (event) => {
    event.preventDefault();
    read(submit);
  };
  older.hidden = true;
  const element = section(
    t("audit"),
    h("p", { class: "quiet" }, t("audit.text")),
    h("form", { class: "inline", onsubmit }, key.row, resource.row, from.row, to.row, submit),
    place.element,
    list,
    older,
  );
  return { element, read: () => read(submit) };
}

const none = (cursor) =>
  cursor ? h("p", { class: "quiet" }, t("page.none_so_far")) : empty(t("audit.none"));

/** A time as a field of a form has it, in the reader's zone, as the service takes it. */
const moment = (text) => (text ? new Date(text).toISOString() : undefined);

/** The route, which is broken behind a slash before it is broken within a name. */
const steps = (change) => change.route.split(/(?<=\/)/).flatMap((step) => [step, h("wbr")]);

function changesTable(changes) {
  return table(
    t("audit"),
    [
      { head: t("audit.at"), cell: (change) => time(change.at) },
      { head: t("audit.call"), cell: (change) => h("span", { class: "break" }, steps(change)) },
      { head: t("audit.resource"), cell: (change) => change.resource },
      { head: t("key.id"), cell: (change) => change.key_id && h("code", {}, change.key_id) },
      { head: t("account"), cell: (change) => change.account },
      { head: t("audit.code"), cell: (change) => change.code },
      {
        head: t("audit.request"),
        cell: (change) => h("code", { class: "break" }, change.request_id),
      },
    ],
    changes,
  );
}
