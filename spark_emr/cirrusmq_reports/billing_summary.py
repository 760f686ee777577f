"""From invoice lines to the answers of `GET /reports/billing`, and to invoices as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import groupby
from typing import Any

from cirrusmq_reports.billing_plan import State
from cirrusmq_reports.times import closes_ms, iso_time

Row = Mapping[str, Any]
_CSV_HEADS = (
    "month", "account", "currency", "resource", "kind", "correction", "count", "bytes", "amount",
)  # fmt: skip
_LINE = ("resource", "kind", "correction", "count", "bytes")


def billing_summaries(
    lines: Iterable[Row],
    state: State,
    from_ms: int,
    generated_ms: int,
    *,
    decimals: int,
    close_days: int,
) -> dict[str, dict[str, Any]]:
    """Account → its answer: an invoice a month and currency, amounts with `decimals` places."""
    head = {
        "from": iso_time(from_ms),
        "to": iso_time(state.to_ms),
        "generated_at": iso_time(generated_ms),
        "time_zone": "UTC",
        "gaps": [{"from": iso_time(gap.from_ms), "to": iso_time(gap.to_ms)} for gap in state.gaps],
    }
    order = sorted(lines, key=_order)
    return {
        account: {
            **head,
            "invoices": [
                {
                    "month": month,
                    "currency": currency,
                    "closed": month <= state.closed_through,
                    "closes_at": iso_time(closes_ms(month, close_days)),
                    **_lines(list(rows), decimals),
                }
                for (month, currency), rows in groupby(of_account, key=_invoice_of)
            ],
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
