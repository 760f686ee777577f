// Purges, rewinds and redrives: those that this tab started, and any other by its id.

import { Refused, each, get } from "../api.js";
import { h, replace } from "../dom.js";
import { field } from "../forms.js";
import { number, time } from "../format.js";
import { t, translated } from "../i18n.js";
import { startedHere } from "../progress.js";
import { act, badge, empty, facts, outcome, section, table } from "../ui.js";

const SECONDS = 5;
const TONES = { running: "waiting", succeeded: "good", failed: "bad" };
const path = (id) => `/operations/${encodeURIComponent(id)}`;

export async function operationsPage() {
  const list = h("div");
  const refresh = async () => {
    const started = startedHere();
    const states = await each(started, ({ id }) => get(path(id)));
    const rows = states
      .map((state, place) => ({ ...started[place], ...state }))
      .filter((_, place) => !(states[place] instanceof Refused));
    replace(
      list,
      rows.length
        ? table(
            t("nav.operations"),
            [
              { head: t("operation"), cell: (row) => row.about },
              {
                head: t("state"),
                cell: (row) => badge(translated("operation", row.state), TONES[row.state]),
              },
              { head: t("operation.done"), number: true, cell: (row) => number(row.done) },
              { head: t("operation.started"), cell: (row) => time(row.started_at) },
              { head: t("operation.finished"), cell: (row) => time(row.finished_at) },
              { head: t("operation.detail"), cell: (row) => row.detail ?? "" },
              { head: t("operation.id"), cell: (row) => h("code", { class: "break" }, row.id) },
            ],
            rows,
          )
        : empty(t("operations.none")),
    );
  };
  const element = h(
    "div",
    {},
    section(t("operations.here"), list),
    section(t("operations.by_id"), byId()),
  );
  return { title: t("nav.operations"), element, refresh, seconds: SECONDS };
}

function byId() {
  const place = outcome();
  const id = field(t("operation.id"), { required: true, spellcheck: "false", autocomplete: "off" });
  const submit = h("button", { type: "submit" }, t("lookup"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(submit, place, async () => {
      const state = await get(path(id.input.value.trim()));
      place.say(
        facts([
          [t("operation"), state.kind],
          [t("state"), badge(translated("operation", state.state), TONES[state.state])],
          [t("operation.done"), number(state.done)],
          [t("operation.started"), time(state.started_at)],
          [t("operation.finished"), time(state.finished_at)],
          [t("operation.detail"), state.detail ?? ""],
        ]),
      );
    });
  };
  return h(
    "form",
    { onsubmit },
    h("p", { class: "quiet" }, t("operations.text")),
    h("div", { class: "inline" }, id.row, submit),
    place.element,
  );
}
