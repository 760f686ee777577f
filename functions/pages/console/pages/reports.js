// Reports as the data pipeline finished them: invoices, backlogs, trends, time to drain.

import { Refused, get } from "../api.js";
import { bars, sparkline } from "../charts.js";
import { h } from "../dom.js";
import { NOTHING, amount, bytes, duration, number, time } from "../format.js";
import { t } from "../i18n.js";
import { badge, empty, facts, section, table } from "../ui.js";

const LINES = 100;
const BY_HOUR = new Set(["kept", "rewindable"]);

export async function reportsPage() {
  const [billing, backlog] = await Promise.all([
    finished("/reports/billing"),
    finished("/reports/backlog"),
  ]);
  const element = h(
    "div",
    {},
    h("p", { class: "quiet" }, t("reports.text")),
    section(
      t("reports.billing"),
      billing ? drawBilling(billing) : empty(t("reports.none"), "cirrusmq report billing"),
    ),
    section(
      t("reports.backlog"),
      backlog ? drawBacklog(backlog) : empty(t("reports.none"), "cirrusmq report backlog"),
    ),
  );
  return { title: t("nav.reports"), element };
}

/** A report, or null where none was made yet. */
async function finished(path) {
  try {
    const report = await get(path);
    while (report.cursor) {
      const page = await get(path, { cursor: report.cursor });
      page.invoices.forEach((invoice) => addPage(report.invoices, invoice));
      report.cursor = page.cursor;
    }
    return report;
  } catch (error) {
    if (error instanceof Refused && error.code === "ReportNotFound") return null;
    throw error;
  }
}

/** An invoice of a page, which may have more lines of the last one of the page before. */
function addPage(invoices, invoice) {
  const last = invoices.at(-1);
  const same = last && ["month", "currency", "number"].every((name) => last[name] === invoice[name]);
  if (same) last.lines.push(...invoice.lines);
  else invoices.push(invoice);
}

function drawBilling(report) {
  const months = report.invoices.filter((each) => !isNote(each)).map((each) => [
    each.month,
    Number(each.total),
    amount(each.total, each.currency),
  ]);
  return h(
    "div",
    {},
    h(
      "p",
      { class: "quiet" },
      t("reports.made", {
        at: time(report.generated_at),
        from: time(report.from),
        to: time(report.to),
      }),
    ),
    report.gaps.length > 0 &&
      h(
        "p",
        { class: "bad" },
        t("reports.gaps", {
          gaps: report.gaps.map((gap) => `${time(gap.from)} – ${time(gap.to)}`).join(", "),
        }),
      ),
    report.budget && budget(report.budget),
    months.length > 0 && bars(t("reports.billing"), months.slice(-12)),
    report.unusual.length > 0 && unusual(report.unusual),
    report.invoices.slice().reverse().map(invoice),
  );
}

function budget({ month, currency, amount: most, spent, forecast, state }) {
  const shown = { amount: most, spent, forecast };
  for (const name of Object.keys(shown)) shown[name] = amount(shown[name], currency);
  const text = t("reports.budget", { month, ...shown });
  return h("p", { class: state === "open" ? "quiet" : "bad" }, text);
}

function unusual(hours) {
  return h(
    "div",
    {},
    h("h3", {}, t("reports.unusual")),
    table(
      t("reports.unusual"),
      [
        { head: t("resource"), cell: (hour) => hour.resource },
        { head: t("kind"), cell: (hour) => hour.kind },
        { head: t("time"), cell: (hour) => time(hour.hour) },
        { head: t("count"), number: true, cell: (hour) => number(hour.count) },
        { head: t("reports.usual"), number: true, cell: (hour) => number(hour.usual_most) },
      ],
      hours,
    ),
  );
}

function invoice(each) {
  const lines = each.lines
    .slice()
    .sort((one, other) => isUse(other) - isUse(one) || Number(other.amount) - Number(one.amount));
  return h(
    "details",
    {},
    h(
      "summary",
      {},
      `${documentName(each)}: ${amount(each.total, each.currency)} `,
      badge(t(each.closed ? "reports.closed" : "reports.open")),
    ),
    facts([
      [t("reports.number"), each.number ?? NOTHING],
      [t("reports.refers"), each.refers_to ?? NOTHING],
      [t("reports.closes"), time(each.closes_at)],
      [
        t("reports.forecast"),
        each.forecast === null ? NOTHING : amount(each.forecast, each.currency),
      ],
    ]),
    table(
      `${t("reports.lines")}: ${documentName(each)}, ${each.number ?? each.currency}`,
      [
        // Tax and the like are of no resource.
        { head: t("resource"), cell: (line) => line.resource || NOTHING },
        {
          head: t("kind"),
          cell: (line) => (line.correction ? `${line.kind} (${line.correction})` : line.kind),
        },
        { head: t("count"), number: true, cell: (line) => used(line, number(line.count)) },
        { head: t("size"), number: true, cell: (line) => used(line, bytes(line.bytes)) },
        {
          head: t("reports.amount"),
          number: true,
          cell: (line) => amount(line.amount, each.currency),
        },
      ],
      lines.slice(0, LINES),
    ),
    lines.length > LINES &&
      h("p", { class: "quiet" }, t("reports.more", { more: lines.length - LINES })),
  );
}

/** `2026-10`, and what it is if it is a note: an account may have several documents of a month. */
function documentName(each) {
  if (!isNote(each)) return each.month;
  const note = each.type === "credit_note" ? t("reports.credit_note") : t("reports.debit_note");
  return `${each.month}, ${note}`;
}

function isNote({ type }) {
  return type === "credit_note" || type === "debit_note";
}

/** Whether a line is of a resource's use: no adjustment, tax, rounding or minimum charge. */
function isUse(line) {
  return line.resource !== "" && !line.resource.startsWith("adjustment:");
}

/** A figure of a line; what is kept is metered by the hour: `3 GB h`. */
function used(line, shown) {
  if (!isUse(line)) return NOTHING;
  return BY_HOUR.has(line.kind) ? `${shown} h` : shown;
}

function drawBacklog(report) {
  if (!report.resources.length) return empty(t("reports.empty"));
  const kept = (each) => each.active + each.inactive + each.delayed;
  const rows = report.resources
    .slice()
    .sort((one, other) => kept(other) - kept(one))
    .slice(0, LINES);
  const largest = rows.slice(0, 10).map((each) => [each.name, kept(each), number(kept(each))]);
  return h(
    "div",
    {},
    h(
      "p",
      { class: "quiet" },
      t("reports.at", { at: time(report.at), made: time(report.generated_at) }),
    ),
    bars(t("reports.largest"), largest),
    table(
      t("reports.backlog"),
      [
        { head: t("resource"), cell: (each) => each.name },
        { head: t("kind"), cell: (each) => each.kind },
        { head: t("backlog"), number: true, cell: (each) => number(each.active) },
        { head: t("in_flight"), number: true, cell: (each) => number(each.inactive) },
        { head: t("delayed"), number: true, cell: (each) => number(each.delayed) },
        { head: t("oldest"), number: true, cell: (each) => duration(each.oldest_age_seconds) },
        { head: t("reports.younger"), number: true, cell: (each) => duration(each.p95_age_seconds) },
        { head: t("reports.reasons"), cell: reasons },
        { head: t("reports.trend"), cell: trend },
        { head: t("reports.growth"), number: true, cell: (each) => number(each.growth_per_hour) },
        { head: t("reports.drain"), number: true, cell: drain },
        {
          head: t("reports.partition"),
          number: true,
          cell: (each) =>
            each.hottest_partition_share === null
              ? NOTHING
              : `${each.hottest_partition}: ${Math.round(each.hottest_partition_share * 100)} %`,
        },
      ],
      rows,
    ),
    report.resources.length > LINES &&
      h("p", { class: "quiet" }, t("reports.more", { more: report.resources.length - LINES })),
    report.labels.length > 0 && byLabel(report.labels),
  );
}

function byLabel(labels) {
  return h(
    "div",
    {},
    h("h3", {}, t("reports.labels")),
    table(
      t("reports.labels"),
      [
        { head: t("reports.label"), cell: (each) => `${each.label}=${each.value}` },
        { head: t("reports.resources"), number: true, cell: (each) => number(each.resources) },
        { head: t("backlog"), number: true, cell: (each) => number(each.active) },
        { head: t("reports.younger"), number: true, cell: (each) => duration(each.p95_age_seconds) },
        { head: t("reports.reasons"), cell: reasons },
        { head: t("reports.growth"), number: true, cell: (each) => number(each.growth_per_hour) },
        { head: t("reports.drain"), number: true, cell: drain },
      ],
      labels.slice(0, LINES),
    ),
  );
}

function drain(each) {
  return each.hours_to_drain === null ? NOTHING : duration(each.hours_to_drain * 3600);
}

/** `max_receives 3`: the reasons of the dead letters; a job of before told none. */
function reasons(each) {
  const told = Object.entries(each.dead_by_reason ?? {});
  return told.map(([reason, count]) => `${reason} ${number(count)}`).join(", ") || NOTHING;
}

function trend(each) {
  const values = each.backlog_by_time.map((point) => point.messages);
  if (!values.length) return NOTHING;
  return sparkline(
    values,
    t("sparkline", { least: Math.min(...values), most: Math.max(...values) }),
  );
}
