"""The billing report for a person: charges by account, resource and kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from cirrusmq_reports.billing_plan import State
from cirrusmq_reports.charts import HALF, show_number, stacked_columns, stacked_rows
from cirrusmq_reports.page import (
    folded,
    nothing,
    render_page,
    section,
    side_by_side,
    table,
    tiles,
    warning,
)
from cirrusmq_reports.times import iso_time
from cirrusmq_reports.transforms.unusual_hours import RULE

_DAYS_SHOWN, _KINDS_SHOWN, _ROWS_SHOWN = 40, 7, 12
_OTHERS = "others"
_NO_AMOUNT = "No line of an invoice reaches the smallest amount."
_GAUGES = ("kept", "rewindable")

Row = Mapping[str, Any]


def render_billing(
    summaries: Mapping[str, Mapping[str, Any]], daily: Sequence[Row], from_ms: int, state: State
) -> str:
    """The page about all accounts; `daily` has the columns of `daily_charges`."""
    title = "Billing"
    period = f"{iso_time(from_ms)} to {iso_time(state.to_ms)}; days and months are of UTC"
    missing = [
        warning(f"The use of {gap.days} is missing: no export shows it.") for gap in state.gaps
    ]
    if not summaries:
        return render_page(title, period, [*missing, nothing("The exports hold no usage.")])
    invoices = [
        (account, invoice)
        for account, summary in summaries.items()
        for invoice in summary["invoices"]
    ]
    currencies = sorted({invoice["currency"] for _, invoice in invoices})
    kinds = _largest_kinds(daily)
    parts = [*missing]
    for currency in currencies:
        own = [entry for entry in invoices if entry[1]["currency"] == currency]
        charged = [row for row in daily if row["currency"] == currency]
        parts += _currency(currency, own, charged, kinds)
    parts.append(section("Unusual hours", _unusual(summaries)))
    parts.append(section("Operations by day", _by_day(daily, kinds, "count", without=_GAUGES)))
    parts.append(section("Invoices", _invoices(invoices)))
    return render_page(title, period, parts)


def _unusual(summaries: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        (
            f"{account} · {hour['resource']}",
            hour["kind"],
            f"{hour['hour'][:10]} {hour['hour'][11:16]}",
            show_number(hour["count"]),
            show_number(hour["usual_most"]),
        )
        for account, summary in summaries.items()
        for hour in summary["unusual"]
    ]
    heads = ("resource", "kind", "hour", "count", "busiest hour before")
    return nothing(RULE) + (table(heads, rows, texts=3) if rows else nothing("None."))


def _currency(
    currency: str,
    invoices: Sequence[tuple[str, Mapping[str, Any]]],
    daily: Sequence[Row],
    kinds: Sequence[str],
) -> list[str]:
    """The charts of one currency."""
    lines = [line for _, invoice in invoices for line in invoice["lines"]]
    resources = [
        (f"{account} · {line['resource']}", line["kind"], Decimal(line["amount"]))
        for account, invoice in invoices
        for line in invoice["lines"]
    ]
    return [
        tiles(_totals(invoices, lines)),
        section(f"Charges by day ({currency})", _by_day(daily, kinds, "charge")),
        side_by_side(
            section(f"Accounts ({currency})", _by_account(invoices)),
            section(f"Dearest resources ({currency})", _dearest(resources, kinds)),
        ),
    ]


def _totals(
    invoices: Sequence[tuple[str, Mapping[str, Any]]], lines: Sequence[Row]
) -> list[tuple[str, str]]:
    total = sum((Decimal(invoice["total"]) for _, invoice in invoices), Decimal(0))
    counted = {
        kind: sum(line["count"] for line in lines if line["kind"] == kind)
        for kind in ("sent", "received", "deleted", "published", "delivered", "attempted")
    }
    forecasts = [Decimal(each["forecast"]) for _, each in invoices if each["forecast"]]
    currency = invoices[0][1]["currency"]
    return [
        (f"{currency}, {_count_of_invoices(len(invoices))}", f"{total:,}"),
        (f"{currency} at this month's end, if each day is like the last", f"{sum(forecasts):,}"),
        *[(kind, show_number(count)) for kind, count in counted.items()],
    ]


def _count_of_invoices(count: int) -> str:
    return "1 invoice" if count == 1 else f"{count:,} invoices"


def _largest_kinds(daily: Sequence[Row]) -> list[str]:
    """The kinds with a colour of their own, the same in every chart: the dearest, then the most."""
    sums: dict[str, tuple[float, int]] = defaultdict(lambda: (0.0, 0))
    for row in daily:
        charge, count = sums[row["kind"]]
        sums[row["kind"]] = charge + float(row["charge"]), count + int(row["count"])
    return sorted(sums, key=lambda kind: (*(-sum_ for sum_ in sums[kind]), kind))[:_KINDS_SHOWN]


def _by_day(
    daily: Sequence[Row], kinds: Sequence[str], figure: str, without: Iterable[str] = ()
) -> str:
    days = sorted({row["day"] for row in daily})[-_DAYS_SHOWN:]
    number = int if figure == "count" else float
    series = {kind: [number(0)] * len(days) for kind in (*kinds, _OTHERS)}
    for row in daily:
        if row["kind"] not in without and row["day"] in days:
            kind = row["kind"] if row["kind"] in kinds else _OTHERS
            series[kind][days.index(row["day"])] += number(row[figure])
    return stacked_columns([day[5:] for day in days], series, title=f"{figure} by day and kind")


def _by_account(invoices: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    totals: dict[str, Decimal] = defaultdict(Decimal)
    for account, invoice in invoices:
        totals[account] += Decimal(invoice["total"])
    dearest = sorted(totals.items(), key=lambda entry: -entry[1])[:_ROWS_SHOWN]
    rows = [(account, [float(total)]) for account, total in dearest if total]
    if not rows:
        return nothing(_NO_AMOUNT)
    return stacked_rows(rows, ["total"], title="Totals of accounts", width=HALF)


def _dearest(resources: Sequence[tuple[str, str, Decimal]], kinds: Sequence[str]) -> str:
    shown = (*kinds, _OTHERS)
    sums: dict[str, dict[str, Decimal]] = defaultdict(lambda: dict.fromkeys(shown, Decimal(0)))
    for name, kind, amount in resources:
        sums[name][kind if kind in kinds else _OTHERS] += amount
    dearest = sorted(sums.items(), key=lambda entry: -sum(entry[1].values()))[:_ROWS_SHOWN]
    rows = [
        (name, [float(each) for each in of.values()]) for name, of in dearest if any(of.values())
    ]
    if not rows:
        return nothing(_NO_AMOUNT)
    return stacked_rows(rows, shown, title="Charges of resources by kind", width=HALF)


def _invoices(invoices: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    shown = []
    for account, invoice in sorted(invoices, key=lambda entry: (entry[1]["month"], entry[0])):
        rows = [
            (
                line["resource"],
                line["kind"],
                f"correction of {line['correction']}" if line["correction"] else "",
                show_number(line["count"]),
                show_number(line["bytes"]),
                line["amount"],
            )
            for line in invoice["lines"]
        ]
        rows.append(("total", "", "", "", "", invoice["total"]))
        heads = ("resource", "kind", "", "count", "bytes", "amount")
        state = "closed" if invoice["closed"] else f"open until {invoice['closes_at'][:10]}"
        shown.append(
            folded(
                f"{invoice['month']} · {account} · {state}",
                f"{invoice['total']} {invoice['currency']}",
                table(heads, rows, texts=3, summed=True),
            )
        )
    return "".join(shown)
