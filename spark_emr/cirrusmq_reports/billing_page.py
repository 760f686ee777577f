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
    parts = [*missing]
    for currency in currencies:
        own = [entry for entry in invoices if entry[1]["currency"] == currency]
        parts += _currency(currency, own, [row for row in daily if row["currency"] == currency])
    parts.append(section("Unusual hours", _unusual(summaries)))
    parts.append(section("Operations by day", _by_day(daily, "count", without=_GAUGES)))
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
    currency: str, invoices: Sequence[tuple[str, Mapping[str, Any]]], daily: Sequence[Row]
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
        section(f"Charges by day ({currency})", _by_day(daily, "charge")),
        side_by_side(
            section(f"Accounts ({currency})", _by_account(invoices)),
            section(f"Dearest resources ({currency})", _dearest(resources)),
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
        (f"{currency}, {len(invoices)} invoices", f"{total:,}"),
        (f"{currency} at this month's end, if each day is like the last", f"{sum(forecasts):,}"),
        *[(kind, show_number(count)) for kind, count in counted.items()],
    ]


def _by_day(daily: Sequence[Row], figure: str, without: Iterable[str] = ()) -> str:
    days = sorted({row["day"] for row in daily})[-_DAYS_SHOWN:]
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(int))
    for row in daily:
        if row["kind"] not in without:
            sums[row["kind"]][row["day"]] += (
                int(row[figure]) if figure == "count" else float(row[figure])
            )
    kinds = sorted(sums, key=lambda kind: -sum(sums[kind].values()))
    series = {kind: [sums[kind][day] for day in days] for kind in kinds[:_KINDS_SHOWN]}
    if kinds[_KINDS_SHOWN:]:
        others = kinds[_KINDS_SHOWN:]
        series["others"] = [sum(sums[kind][day] for kind in others) for day in days]
    return stacked_columns([day[5:] for day in days], series, title=f"{figure} by day and kind")


def _by_account(invoices: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    totals: dict[str, Decimal] = defaultdict(Decimal)
    for account, invoice in invoices:
        totals[account] += Decimal(invoice["total"])
    dearest = sorted(totals.items(), key=lambda entry: -entry[1])[:_ROWS_SHOWN]
    rows = [(account, [float(total)]) for account, total in dearest]
    return stacked_rows(rows, ["total"], title="Totals of accounts", width=HALF)


def _dearest(resources: Sequence[tuple[str, str, Decimal]]) -> str:
    kinds = sorted({kind for _, kind, _ in resources})
    sums: dict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for name, kind, amount in resources:
        sums[name][kind] += amount
    dearest = sorted(sums.items(), key=lambda entry: -sum(entry[1].values()))[:_ROWS_SHOWN]
    used = [kind for kind in kinds if any(amounts[kind] for _, amounts in dearest)]
    rows = [(name, [float(amounts[kind]) for kind in used]) for name, amounts in dearest]
    return stacked_rows(rows, used, title="Charges of resources by kind", width=HALF)


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
