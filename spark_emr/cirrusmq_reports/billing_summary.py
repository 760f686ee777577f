"""From invoice lines to the answers of `GET /reports/billing`, and to invoices as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import groupby
from typing import Any

from cirrusmq_reports.billing_plan import State
from cirrusmq_reports.times import DAY_MS, closes_ms, iso_month, iso_time, month_ms, next_month

Row = Mapping[str, Any]
_CSV_HEADS = (
    "month", "account", "currency", "resource", "kind", "correction", "count", "bytes", "amount",
)  # fmt: skip
_LINE = ("resource", "kind", "correction", "count", "bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The rows that a report is made of."""

    lines: Sequence[Row]
    """Of `invoice_lines`."""
    so_far: Sequence[Row]
    """Of `month_so_far`."""
    unusual: Sequence[Row]
    """Of `unusual_hours`, with `hour_ms` for `hour`."""
    daily: Sequence[Row]
    """Of `daily_charges`."""


def billing_summaries(
    figures: Figures,
    state: State,
    from_ms: int,
    generated_ms: int,
    *,
    decimals: int,
    close_days: int,
) -> dict[str, dict[str, Any]]:
    """Account → its answer: an invoice a month and currency, amounts with `decimals` places."""
    forecasts = _forecasts(figures.so_far, state.to_ms, decimals)
    running = iso_month(state.to_ms)
    head = {
        "from": iso_time(from_ms),
        "to": iso_time(state.to_ms),
        "generated_at": iso_time(generated_ms),
        "time_zone": "UTC",
        "gaps": [{"from": iso_time(gap.from_ms), "to": iso_time(gap.to_ms)} for gap in state.gaps],
    }
    shown = [line for line in figures.lines if month_ms(line["month"]) >= from_ms]
    order = sorted(shown, key=_order)
    return {
        account: {
            **head,
            "invoices": [
                {
                    "month": month,
                    "currency": currency,
                    "closed": month <= state.closed_through,
                    "closes_at": iso_time(closes_ms(month, close_days)),
                    "forecast": forecasts.get((account, currency)) if month == running else None,
                    **_lines(list(rows), decimals),
                }
                for (month, currency), rows in groupby(of_account, key=_invoice_of)
            ],
            "unusual": [_unusual(row) for row in figures.unusual if row["account"] == account],
        }
        for account, of_account in groupby(order, key=lambda row: row["account"])
    }


def invoices_as_csv(summaries: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """`2026-11/acme-USD` and the text of that invoice, a row a line and the total last."""
    for account, summary in summaries.items():
        for invoice in summary["invoices"]:
            month, currency = invoice["month"], invoice["currency"]
            text = io.StringIO()
            writer = csv.writer(text)
            writer.writerow(_CSV_HEADS)
            for line in invoice["lines"]:
                use = [line[name] for name in _LINE]
                writer.writerow([month, account, currency, *use, line["amount"]])
            writer.writerow([month, account, currency, "total", *[""] * 4, invoice["total"]])
            yield f"{month}/{account}-{currency}", text.getvalue()


def total_forecasts(summaries: Mapping[str, Mapping[str, Any]]) -> dict[str, Decimal]:
    """Currency → the forecasts of all accounts together."""
    totals: dict[str, Decimal] = {}
    for summary in summaries.values():
        for invoice in summary["invoices"]:
            if invoice["forecast"] is not None:
                before = totals.get(invoice["currency"], Decimal(0))
                totals[invoice["currency"]] = before + Decimal(invoice["forecast"])
    return totals


def _forecasts(rows: Iterable[Row], to_ms: int, decimals: int) -> dict[tuple[str, str], str]:
    """(account, currency) → the running month's total if use goes on as in the last day."""
    left_ms = month_ms(next_month(iso_month(to_ms))) - to_ms
    days_left = Decimal(left_ms) / DAY_MS
    place = Decimal(1).scaleb(-decimals)
    return {
        (row["account"], row["currency"]): _show(
            (row["so_far"] + row["last_day"] * days_left).quantize(place, ROUND_HALF_UP), decimals
        )
        for row in rows
    }


def _unusual(row: Row) -> dict[str, Any]:
    shown = {name: row[name] for name in ("resource", "kind", "count", "usual_most")}
    return {"hour": iso_time(row["hour_ms"]), **shown}


def _order(row: Row) -> tuple[str, ...]:
    correction = row["correction"] or ""
    return (*(row["account"], *_invoice_of(row)), correction, row["resource"], row["kind"])


def _invoice_of(row: Row) -> tuple[str, str]:
    return row["month"], row["currency"]


def _lines(rows: list[Row], decimals: int) -> dict[str, Any]:
    total = sum((row["amount"] for row in rows), Decimal(0))
    return {
        "lines": [
            {**{name: row[name] for name in _LINE}, "amount": _show(row["amount"], decimals)}
            for row in rows
        ],
        "total": _show(total, decimals),
    }


def _show(amount: Decimal, decimals: int) -> str:
    return f"{amount:.{decimals}f}"
