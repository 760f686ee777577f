// All queues, a page of them at a time; those with dead letters are told first, wherever they are.

import { Refused, each, get, queuePath } from "../api.js";
import { deadLettersSection, readDeadLetters } from "../dead_letters.js";
import { h, replace } from "../dom.js";
import { t } from "../i18n.js";
import { newQueue, queueTable } from "../queue_table.js";
import { lastHours } from "../rates.js";
import { nothing, pager, section } from "../ui.js";

const QUEUES = 50;
const SECONDS = 15;

export async function queuesPage({ query }) {
  const search = h("div");
  const lost = h("div");
  const list = h("div");
  const refresh = async () => {
    const prefix = query.get("prefix") ?? "";
    const page = await get("/queues", {
      prefix,
      limit: QUEUES,
      cursor: query.get("cursor") ?? undefined,
    });
    const shown = await each(page.queues, (queue) => get(queuePath(queue.name)));
    const there = shown.filter((queue) => !(queue instanceof Refused));
    const [dead, hours] = await Promise.all([
      readDeadLetters(there),
      lastHours({ queues: there.map((queue) => queue.name) }),
    ]);
    if (!search.contains(document.activeElement))
      replace(search, pager("/queues", query, page.cursor));
    replace(lost, deadLettersSection(dead));
    const failing = new Set(dead.found.map(({ queue }) => queue.name));
    replace(
      list,
      there.length
        ? queueTable(there, hours, failing)
        : nothing(prefix, t("queues.none"), "cirrusmq queue create orders"),
    );
  };
  const element = h("div", {}, search, lost, section(t("queues"), list, newQueue()));
  return { title: t("nav.queues"), element, refresh, seconds: SECONDS };
}
