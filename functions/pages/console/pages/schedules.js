// The account's schedules: when each fires next, into which queue or topic, and why it did not.

import { call, get } from "../api.js";
import { h, replace } from "../dom.js";
import { plain, time } from "../format.js";
import { t } from "../i18n.js";
import { act, badge, button, confirm, nothing, outcome, pager, section, table } from "../ui.js";

const SCHEDULES = 25;
const SECONDS = 30;
const COMMAND = 'cirrusmq schedule put daily "make the report" --queue reports --cron "0 8 * * *"';

export async function schedulesPage({ query }) {
  const search = h("div");
  const list = h("div");
  const told = outcome();
  const refresh = async () => {
    const asked = { limit: SCHEDULES, ...Object.fromEntries(query) };
    const page = await get("/schedules", asked);
    if (!search.contains(document.activeElement))
      replace(search, pager("/schedules", query, page.cursor));
    replace(
      list,
      page.schedules.length
        ? schedulesTable(page.schedules, (name, trigger) => remove(name, trigger, told, refresh))
        : nothing(query.get("prefix"), t("schedules.none"), COMMAND),
    );
  };
  const element = h("div", {}, search, section(t("nav.schedules"), told.element, list));
  return { title: t("nav.schedules"), element, refresh, seconds: SECONDS };
}

function schedulesTable(schedules, remove) {
  return table(
    t("nav.schedules"),
    [
      { head: t("name"), cell: (one) => one.name },
      { head: t("schedules.target"), cell: (one) => target(one) },
      { head: t("schedules.rule"), cell: (one) => rule(one) },
      { head: t("schedules.next"), cell: (one) => (one.next_at ? time(one.next_at) : "") },
      { head: t("schedules.error"), cell: (one) => failure(one.last_error) },
      {
        head: t("actions"),
        cell: (one) => {
          const trigger = button(t("delete"), () => remove(one.name, trigger), "small");
          return trigger;
        },
      },
    ],
    schedules,
  );
}

async function remove(name, trigger, told, refresh) {
  if (!(await confirm(t("schedules.delete"), t("schedules.delete.text", { name }), t("delete"))))
    return;
  await act(trigger, told, async () => {
    await call("DELETE", `/schedules/${encodeURIComponent(name)}`);
    await refresh();
  });
}

function target({ queue, topic }) {
  const [kind, name] = queue ? ["queues", queue] : ["topics", topic];
  return h("a", { href: `#/${kind}/${encodeURIComponent(name)}` }, name);
}

const rule = ({ cron, time_zone, every_seconds }) =>
  cron ? `${cron} (${time_zone})` : t("schedules.every", { seconds: every_seconds });

const failure = (error) =>
  error
    ? h("span", {}, badge(plain(error.code), "bad"), " ", time(error.due_at), " ", error.detail)
    : "";
