"""The billing report for a person: charges by account, resource and kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote

from cirrusmq_reports.billing_sums import Sums, Total, is_use
from cirrusmq_reports.budgets import exceeded, sentence
from cirrusmq_reports.charts import HALF, show_number, stacked_columns, stacked_rows
from cirrusmq_reports.coverage import ScannedRange
from cirrusmq_reports.page import (
    folded,
    links,
    nothing,
    render_page,
    section,
    side_by_side,
    table,
    tiles,
    warning,
)
from cirrusmq_reports.rate_card import KEPT, REWINDABLE
from cirrusmq_reports.swap import DOCUMENTS
from cirrusmq_reports.times import DAY_MS, iso_day, minute_text, parse_time
from cirrusmq_reports.transforms.unusual_hours import RULE

_DAYS_SHOWN, _KINDS_SHOWN = 40, 7
ACCOUNTS_SHOWN, LINES_SHOWN = 200, 50
"""Maximum numbers on the page; tables and documents have all."""
DOCUMENTS_HOME = f"../../../{DOCUMENTS}"
"""Path of the documents, relative to the page's folder."""
_OTHERS = "others"
_NO_AMOUNT = "No line of an invoice reaches the smallest amount."
_GAUGES = {KEPT: "kept (byte hours)", REWINDABLE: "rewindable (message hours)"}
"""Kinds that are metered by the hour, with their units."""
_COUNTED = ("sent", "received", "deleted", "published", "delivered", "attempted")

Row = Mapping[str, Any]


class PageInput(NamedTuple):
    """The data of the page."""

    summaries: Mapping[str, Mapping[str, Any]]
    """Summaries of some accounts, cut by `shortened`."""
    sums: Sums
    """Sums of all accounts that have a summary."""
    daily: Sequence[Row]
    """The rows of `daily_charges`."""
    from_ms: int
    to_ms: int
    gaps: Sequence[ScannedRange]
    waiting: Sequence[tuple[str, Sequence[ScannedRange]]]
    """Months that cannot close, and the times without an export."""
    set_aside: Mapping[str, int]
    """Reason → number of usage entries in the quarantine."""
    budgets: Sequence[Row] = ()
    """The result of `budget_states`."""


def shortened(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a summary with only the most expensive lines of each open month, for a page."""
    invoices = []
    for invoice in summary["invoices"]:
        if invoice["closed"]:
            invoices.append(invoice)
            continue
        by_price = sorted(invoice["lines"], key=lambda line: -abs(Decimal(line["amount"])))
        kept = by_price[:LINES_SHOWN]
        lines = [line for line in invoice["lines"] if line in kept]
        more = len(invoice["lines"]) - len(lines)
        invoices.append({**invoice, "lines": lines, "more": more})
    return {**summary, "invoices": invoices}


def render_billing(page: PageInput) -> str:
    """Returns the page for all accounts."""
    title, summaries, daily = "Billing", page.summaries, page.daily
    first, last = minute_text(page.from_ms), minute_text(page.to_ms)
    period = f"{first} to {last}; times, days and months are of UTC"
    missing = _warnings(page)
    if not summaries:
        parts = [*missing, nothing("The exports hold no usage."), _left_out(page)]
        return render_page(title, period, parts)
    invoices = [
        (account, invoice)
        for account, summary in summaries.items()
        for invoice in summary["invoices"]
    ]
    kinds = _largest_kinds(daily)
    parts = [*missing]
    for currency, total in sorted(page.sums.currencies.items()):
        charged = [row for row in daily if row["currency"] == currency]
        parts += _currency(currency, total, charged, kinds)
    if page.budgets:
        parts.append(section("Budgets of the running month", _budgets(page.budgets)))
    parts.append(section("Unusual hours", _unusual(page.sums)))
    parts.append(section("Operations by day", _by_day(daily, kinds, "count", without=_GAUGES)))
    parts.append(section("Invoices", _invoices(invoices, page)))
    parts.append(section("In no bill", _left_out(page)))
    return render_page(title, period, parts)


def _warnings(page: PageInput) -> list[str]:
    found = [f"The use of {gap.days} is missing: no export shows it." for gap in page.gaps]
    # Months close in order: later months wait for the first one.
    for month, missing in page.waiting[:1]:
        days = ", ".join(stretch.days for stretch in missing)
        found.append(
            f"The invoices of {month} and of all later months wait: no export shows what was "
            f"written from {days}. Give an export of that time, or --accept-gaps."
        )
    if page.set_aside:
        count = sum(page.set_aside.values())
        found.append(f"{count:,} entries of usage are set aside as odd, and not billed.")
    found += map(sentence, exceeded(page.budgets))
    return [warning(text) for text in found]


def _left_out(page: PageInput) -> str:
    given_up = nothing(
        "Changes that the meter could not count within 12 hours are in no bill: they wait for a "
        "person among the service's unprocessed events."
    )
    rows = [(reason, show_number(count)) for reason, count in sorted(page.set_aside.items())]
    return given_up + (table(("set aside, since", "entries"), rows) if rows else "")


def _budgets(states: Sequence[Row]) -> str:
    heads = ("account", "state", "currency", "budget", "so far", "at the month's end")
    names = ("account", "state", "currency", "amount", "spent", "forecast")
    return table(heads, [tuple(each[name] for name in names) for each in states], texts=3)


def _unusual(sums: Sums) -> str:
    rows = [
        (
            f"{account} · {hour['resource']}",
            hour["kind"],
            f"{hour['hour'][:10]} {hour['hour'][11:16]}",
            show_number(hour["count"]),
            show_number(hour["usual_most"]),
        )
        for account, hour in sums.unusual
    ]
    if not rows:
        return nothing(RULE) + nothing("None.")
    heads = ("resource", "kind", "hour", "count", "busiest hour before")
    more = f"{sums.unusual_more:,} more are in the accounts' answers."
    shown = nothing(RULE) + table(heads, rows, texts=3)
    return shown + (nothing(more) if sums.unusual_more else "")


def _currency(currency: str, total: Total, daily: Sequence[Row], kinds: Sequence[str]) -> list[str]:
    """Returns the charts of one currency."""
    return [
        tiles(_totals(currency, total)),
        section(f"Charges by day ({currency})", _by_day(daily, kinds, "charge")),
        side_by_side(
            section(f"Accounts ({currency})", _by_account(total)),
            section(f"Dearest resources ({currency})", _dearest(total, kinds)),
        ),
    ]


def _totals(currency: str, total: Total) -> list[tuple[str, str]]:
    documents = _counted(total.issued, "document")
    months = _counted(total.open, "open month")
    return [
        (f"{currency}, of {documents} and {months}", f"{total.amount:,}"),
        (f"{currency} at this month's end, if each day is like the last", f"{total.forecast:,}"),
        *[(kind, show_number(total.counts[kind])) for kind in _COUNTED],
    ]


def _counted(count: int, name: str) -> str:
    return f"1 {name}" if count == 1 else f"{count:,} {name}s"


def _largest_kinds(daily: Sequence[Row]) -> list[str]:
    """Returns the kinds with their own colour in all charts: by charge, then by number."""
    sums: dict[str, tuple[float, int]] = defaultdict(lambda: (0.0, 0))
    for row in daily:
        charge, count = sums[row["kind"]]
        sums[row["kind"]] = charge + float(row["charge"]), count + int(row["count"])
    return sorted(sums, key=lambda kind: (*(-sum_ for sum_ in sums[kind]), kind))[:_KINDS_SHOWN]


def _by_day(
    daily: Sequence[Row], kinds: Sequence[str], figure: str, without: Iterable[str] = ()
) -> str:
    days = _last_days({row["day"] for row in daily})
    number = int if figure == "count" else float
    series = {kind: [number(0)] * len(days) for kind in (*kinds, _OTHERS)}
    for row in daily:
        if row["kind"] not in without and row["day"] in days:
            kind = row["kind"] if row["kind"] in kinds else _OTHERS
            series[kind][days.index(row["day"])] += number(row[figure])
    return stacked_columns([day[5:] for day in days], series, title=f"{figure} by day and kind")


def _last_days(used: Iterable[str]) -> list[str]:
    """Returns the last days up to the last day with use; days without use are included."""
    times = sorted(map(parse_time, used))
    last_ms = times[-1] if times else 0
    first_ms = max(times[0] if times else 1, last_ms - (_DAYS_SHOWN - 1) * DAY_MS)
    return [iso_day(day_ms) for day_ms in range(first_ms, last_ms + 1, DAY_MS)]


def _by_account(total: Total) -> str:
    rows = [(account, [float(amount)]) for amount, account in total.accounts if amount]
    if not rows:
        return nothing(_NO_AMOUNT)
    return stacked_rows(rows, ["total"], title="Totals of accounts", width=HALF)


def _dearest(total: Total, kinds: Sequence[str]) -> str:
    shown = (*kinds, _OTHERS)
    rows = []
    for name, charges in total.resources:
        sums = dict.fromkeys(shown, Decimal(0))
        for kind, charge in charges.items():
            sums[kind if kind in kinds else _OTHERS] += charge
        if any(sums.values()):
            rows.append((name, [float(each) for each in sums.values()]))
    if not rows:
        return nothing(_NO_AMOUNT)
    return stacked_rows(rows, shown, title="Charges of resources by kind", width=HALF)


def _invoices(invoices: Sequence[tuple[str, Mapping[str, Any]]], page: PageInput) -> str:
    shown = []
    for account, invoice in sorted(invoices, key=lambda entry: (entry[1]["month"], entry[0])):
        if invoice["closed"]:
            state = f"{invoice['type'].replace('_', ' ')} {invoice['number']}"
            content = _document(account, invoice["number"])
        else:
            state = f"open until {invoice['closes_at'][:10]}"
            content = _open_month(invoice)
        shown.append(
            folded(
                f"{invoice['month']} · {account} · {state}",
                f"{invoice['total']} {invoice['currency']}",
                content,
            )
        )
    others = page.sums.accounts - len(page.summaries)
    if others:
        shown.append(nothing(f"{others:,} more accounts are in the tables."))
    return "".join(shown)


def _open_month(invoice: Row) -> str:
    rows = [_line(line) for line in invoice["lines"]]
    if invoice["more"]:
        rows.append((f"and {invoice['more']:,} more lines: in the tables", *[""] * 5))
    rows.append(("total", *[""] * 4, invoice["total"]))
    heads = ("resource", "kind", "use of", "count", "bytes", f"amount ({invoice['currency']})")
    return table(heads, rows, texts=2, summed=True)


def _document(account: str, number: str) -> str:
    """Returns links from the run's folder to a document's files."""
    # Once for the name of the folder, and once for an address.
    place = f"{DOCUMENTS_HOME}/{quote(quote(account, safe=''))}/{quote(number)}"
    return links((end.upper(), f"{place}.{end}") for end in ("html", "csv", "json"))


def _line(line: Row) -> tuple[str, ...]:
    used, kind = is_use(line), str(line["kind"])
    return (
        line["resource"],
        _GAUGES.get(kind, kind),
        line["correction"] or "",
        show_number(line["count"]) if used else "",
        show_number(line["bytes"]) if used else "",
        line["amount"],
    )
