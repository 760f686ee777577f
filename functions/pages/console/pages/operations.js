// Long work of the last seven days: what runs, how far it is, what has ended; any other by its id.

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { choice, field } from "../forms.js";
import { number, time } from "../format.js";
import { t, translated } from "../i18n.js";
import { act, badge, empty, facts, outcome, pageLinks, section, table } from "../ui.js";

const SECONDS = 5;
const LIMIT = 50;
const STATES = ["running", "succeeded", "failed"];
const KINDS = ["purge", "rewind", "redrive", "backfill", "replay"];
const TONES = { running: "waiting", succeeded: "good", failed: "bad" };

export async function operationsPage({ query }) {
  const list = h("div");
  const links = h("div");
  const refresh = async () => {
    const asked = { limit: LIMIT, ...Object.fromEntries(query) };
    const page = await get("/operations", asked);
    replace(list, page.operations.length ? operationsTable(page.operations) : none(page.cursor));
    if (!links.contains(document.activeElement))
      replace(links, pageLinks("/operations", query, page.cursor));
  };
  const element = h(
    "div",
    {},
    section(t("operations.all"), filters(query), list, links),
    section(t("operations.by_id"), byId()),
  );
  return { title: t("nav.operations"), element, refresh, seconds: SECONDS };
}

/** Which operations are listed; the choice is in the address. */
function filters(query) {
  const one = (label, name, words) => {
    const onchange = () => {
      const chosen = new URLSearchParams(query);
      chosen.delete("cursor");
      chosen.set(name, input.value);
      location.hash = `/operations?${chosen}`;
    };
    const choices = words.map((word) => [word, translated("operation", word)]);
    const { input, row } = choice(label, { value: query.get(name) ?? "", onchange }, choices);
    return row;
  };
  return h(
    "div",
    { class: "inline" },
    one(t("state"), "state", STATES),
    one(t("kind"), "kind", KINDS),
  );
}

const none = (cursor) =>
  cursor ? h("p", { class: "quiet" }, t("page.none_so_far")) : empty(t("operations.none"));

function operationsTable(operations) {
  return table(
    t("nav.operations"),
    [
      { head: t("operation"), cell: (each) => translated("operation", each.kind) },
      { head: t("operation.of"), cell: place },
      { head: t("state"), cell: state },
      { head: t("operation.done"), number: true, cell: (each) => number(each.done) },
      { head: t("operation.started"), cell: (each) => time(each.started_at) },
      { head: t("operation.finished"), cell: (each) => time(each.finished_at) },
      { head: t("key.id"), cell: (each) => each.key_id && h("code", {}, each.key_id) },
      { head: t("operation.detail"), cell: (each) => each.detail ?? "" },
      { head: t("operation.id"), cell: (each) => h("code", { class: "break" }, each.id) },
    ],
    operations,
  );
}

const state = (operation) =>
  badge(translated("operation", operation.state), TONES[operation.state]);

/** The queue and receiver, or the topic and subscription, with a link to their page. */
function place(operation) {
  const { queue, receiver, topic, subscription } = operation;
  if (!queue && !topic) return "";
  const names = (queue ? [queue, receiver] : [topic, subscription]).filter(Boolean);
  const parts = queue ? ["queues", queue] : ["subscriptions", topic, subscription];
  const href = `#/${parts.map(encodeURIComponent).join("/")}`;
  return h("a", { href }, names.join(" / "));
}

function byId() {
  const found = outcome();
  const id = field(t("operation.id"), { required: true, spellcheck: "false", autocomplete: "off" });
  const submit = h("button", { type: "submit" }, t("lookup"));
  const onsubmit = (event) => {
    event.preventDefault();
    act(submit, found, async () => {
      const operation = await get(`/operations/${encodeURIComponent(id.input.value.trim())}`);
      found.say(
        facts([
          [t("operation"), translated("operation", operation.kind)],
          [t("operation.of"), place(operation)],
          [t("state"), state(operation)],
          [t("operation.done"), number(operation.done)],
          [t("operation.started"), time(operation.started_at)],
          [t("operation.finished"), time(operation.finished_at)],
          [t("operation.detail"), operation.detail ?? ""],
        ]),
      );
    });
  };
  return h(
    "form",
    { onsubmit },
    h("div", { class: "inline" }, id.row, submit),
    found.element,
  );
}
