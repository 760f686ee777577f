// Queues that hold dead letters, and whose they are: what was given up is first on every page.

import { Refused, each, get, post, queuePath } from "./api.js";
import { h } from "./dom.js";
import { counted, duration } from "./format.js";
import { t } from "./i18n.js";
import { badge, section, table } from "./ui.js";

const OWN = "dlq-";
const MOST = 25;
const AGAIN_MS = 60_000;
const notes = new Map();

/**
 * The queues with dead letters: those that the service or the library made, which are found by
 * their names, and those that `queues` and `states` (subscriptions) name. Resolves to
 * {found: [{queue, owners: [[text, address], …], reason}, …], more: whether there may be others}.
 */
export async function readDeadLetters(queues, states = []) {
  const own = await get("/queues", { prefix: OWN, limit: MOST });
  const owners = ownersOf([...queues, ...own.queues], states);
  const read = new Map(queues.filter((queue) => queue.counts).map((queue) => [queue.name, queue]));
  const names = [...new Set([...own.queues.map((queue) => queue.name), ...owners.keys()])];
  const shown = await each(names, async (name) => {
    const queue = read.get(name) ?? (await get(queuePath(name)));
    const note = queue.counts.active > 0 ? await noteOf(queue) : null;
    return note && { queue, reason: note.reason, owners: owners.get(name) ?? [ownerIn(note)] };
  });
  const found = shown.filter((one) => one && !(one instanceof Refused));
  found.sort((one, other) => other.queue.counts.active - one.queue.counts.active);
  return { found, more: Boolean(own.cursor) };
}

/** A section that says what was given up, whose it is, and why; nothing if there is none. */
export function deadLettersSection({ found, more }) {
  if (!found.length) return null;
  return section(
    t("dead.lost"),
    table(
      t("dead.lost"),
      [
        {
          head: t("queue"),
          cell: ({ queue }) =>
            h("a", { href: `#/queues/${encodeURIComponent(queue.name)}/dead` }, queue.name),
        },
        { head: t("dead_letters"), number: true, cell: ({ queue }) => countOf(queue) },
        { head: t("dead.by"), cell: ({ owners }) => owners.map(ownerLink) },
        { head: t("dead.reason"), cell: ({ reason }) => reason },
        {
          head: t("oldest"),
          number: true,
          cell: ({ queue }) => duration(queue.counts.oldest_active_age_seconds),
        },
      ],
      found,
    ),
    more && h("p", { class: "quiet" }, t("dead.more", { most: MOST })),
  );
}

const countOf = (queue) => badge(counted(queue.counts, "active"), "bad");

function ownerLink([text, address], place) {
  return [place > 0 && ", ", address ? h("a", { href: address }, text) : text];
}

/** Dead-letter queue -> [[text, address], …] of the queues and subscriptions that name it. */
function ownersOf(queues, states) {
  const owners = new Map();
  const add = (name, text, address) =>
    owners.set(name, [...(owners.get(name) ?? []), [text, address]]);
  for (const { name, dead_letter: dead } of queues) {
    if (dead) add(dead.queue, name, `#/queues/${encodeURIComponent(name)}`);
  }
  for (const held of states) {
    const [topic, name] = [held.topic, held.name].map(encodeURIComponent);
    const queue = held.dead_letter_queue ?? `${OWN}${held.id}`;
    add(queue, `${held.topic} / ${held.name}`, `#/subscriptions/${topic}/${name}`);
  }
  return owners;
}

/** The owner that a dead letter itself notes. */
function ownerIn({ source_queue: source, receiver, subscription }) {
  const [first, second] = [source, receiver ?? subscription ?? ""].map(encodeURIComponent);
  if (subscription) return [`${source} / ${subscription}`, `#/subscriptions/${first}/${second}`];
  if (receiver) return [`${source} / ${receiver}`, `#/queues/${first}/receivers`];
  return [source, `#/queues/${first}`];
}

/** The note of one dead letter in the queue, read at most once a minute; null if it has none. */
async function noteOf(queue) {
  const held = notes.get(queue.id);
  if (held?.read > Date.now() - AGAIN_MS) return held.note;
  const path = queuePath(queue.name, "/messages/peek");
  const { messages } = await post(path, { max: 1, dead_letter: {} });
  const note = messages[0]?.dead_letter ?? null;
  notes.set(queue.id, { read: Date.now(), note });
  return note;
}
