// Dead letters with their reasons, chosen one by one or by filter, and sent back.

import { get, post, queuePath } from "../api.js";
import { h, replace } from "../dom.js";
import { checkbox, field, readNumber } from "../forms.js";
import { counted } from "../format.js";
import { t } from "../i18n.js";
import { messageCard } from "../messages.js";
import { follow } from "../progress.js";
import { act, button, confirm, empty, outcome, section } from "../ui.js";

const MOST = 16;

export async function deadLettersTab(queue) {
  const place = outcome();
  const list = h("div");
  const progress = h("div");
  const filter = filterFields();
  const to = field(t("dead.to"), {
    name: "to",
    maxlength: 129,
    placeholder: t("dead.to.source"),
    spellcheck: "false",
  });
  // An id may be there twice, as dead letters of two receivers: a redrive takes both.
  const chosen = new Set();
  let cursor;

  const look = async () => {
    const answer = await post(queuePath(queue.name, "/messages/peek"), {
      max: MOST,
      cursor,
      dead_letter: filter.read(),
    });
    cursor = answer.cursor;
    chosen.clear();
    const cards = answer.messages.map((message) => {
      const choice = checkbox(t("choose"), {
        onchange: () => {
          if (choice.input.checked) chosen.add(message);
          else chosen.delete(message);
          count();
        },
      });
      return messageCard(message, choice.row);
    });
    // A look is bounded: with a cursor, there may be some behind.
    const none = cursor ? "dead.none.yet" : filter.isSet() ? "dead.none" : "dead.nothing";
    const example = `cirrusmq peek ${queue.name} --reason max_receives`;
    replace(list, cards.length ? cards : empty(t(none), example));
    more.hidden = !cursor;
    count();
  };
  const count = () => {
    some.textContent = t("dead.redrive.chosen", { count: chosen.size });
    some.disabled = !chosen.size;
  };
  const redrive = async (what, text) => {
    const target = to.input.value.trim() || undefined;
    const where = target ?? t("dead.to.source");
    if (
      !(await confirm(t("dead.redrive"), t(text, { ...what.told, to: where }), t("dead.redrive")))
    )
      return;
    const answer = await post(queuePath(queue.name, "/redrive"), { to: target, ...what.body });
    await follow(answer.operation, t("dead.redrive.about", { name: queue.name }), progress);
    cursor = undefined;
    await look();
  };
  const first = button(
    t("dead.look"),
    () =>
      act(first, place, () => {
        cursor = undefined;
        return look();
      }),
    "main",
  );
  const more = button(t("page.next"), () => act(more, place, look));
  const some = button(
    "",
    () =>
      act(some, place, () =>
        redrive(
          {
            body: { ids: [...new Set([...chosen].map((each) => each.id))] },
            told: { count: chosen.size },
          },
          "dead.redrive.some.text",
        ),
      ),
    "danger",
  );
  const all = button(
    t("dead.redrive.all"),
    () =>
      act(all, place, async () => {
        const { counts } = await get(queuePath(queue.name));
        await redrive(
          {
            body: { dead_letter: filter.read() },
            told: { count: counted(counts, "active"), name: queue.name },
          },
          filter.isSet() ? "dead.redrive.filtered.text" : "dead.redrive.all.text",
        );
      }),
    "danger",
  );
  const element = section(
    t("queue.tab.dead"),
    h("p", { class: "quiet" }, t("dead.text")),
    leadsTo(queue),
    filter.element,
    h("div", { class: "buttons" }, first, more),
    list,
    to.row,
    h("div", { class: "buttons" }, some, all),
    place.element,
    progress,
  );
  await look();
  return { element };
}

/** Where this queue's own dead letters are, for who looks for them here. */
function leadsTo({ name, dead_letter: dead }) {
  if (!dead) return null;
  const address = `#/queues/${encodeURIComponent(dead.queue)}/dead`;
  return h("p", {}, t("dead.leads", { name }), " ", h("a", { href: address }, dead.queue));
}

function filterFields() {
  const fields = {
    reason: field(t("dead.reason"), { maxlength: 256 }),
    source_queue: field(t("dead.from"), { maxlength: 64 }),
    older_than_seconds: field(t("dead.older"), { type: "number", min: 0, max: 1_296_000 }),
    younger_than_seconds: field(t("dead.younger"), { type: "number", min: 0, max: 1_296_000 }),
  };
  const given = () => Object.entries(fields).filter(([, { input }]) => input.value.trim() !== "");
  return {
    element: h(
      "div",
      { class: "columns" },
      Object.values(fields).map((each) => each.row),
    ),
    isSet: () => given().length > 0,
    /** What a dead letter's note must say: {} takes any, and leaves out messages without a note. */
    read: () =>
      Object.fromEntries(
        given().map(([name, { input }]) => [
          name,
          input.type === "number" ? readNumber(input.value) : input.value.trim(),
        ]),
      ),
  };
}
