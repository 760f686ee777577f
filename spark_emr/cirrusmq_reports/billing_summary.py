"""From invoice lines to the answers of `GET /reports/billing`, by account."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import groupby
from typing import Any

from cirrusmq_reports.times import iso_time

Row = Mapping[str, Any]


def billing_summaries(
    lines: Iterable[Row], from_ms: int, to_ms: int, generated_ms: int, decimals: int
) -> dict[str, dict[str, Any]]:
    """Account → its answer: an invoice a month, amounts as text with `decimals` places."""
    head = {
        "from": iso_time(from_ms),
        "to": iso_time(to_ms),
        "generated_at": iso_time(generated_ms),
    }
    order = sorted(lines, key=_order)
    return {
        account: {
            **head,
            "invoices": [
                _invoice(month, list(rows), decimals)
                for month, rows in groupby(of_account, key=lambda row: row["month"])
            ],
        }
        for account, of_account in groupby(order, key=lambda row: row["account"])
    }


def _order(row: Row) -> tuple[str, ...]:
    return (row["account"], row["month"], row["resource"], row["kind"])


def _invoice(month: str, rows: list[Row], decimals: int) -> dict[str, Any]:
    currencies = sorted({row["currency"] for row in rows})
    return {
        "month": month,
        "currency": "/".join(currencies),
        "lines": [
            {
                "resource": row["resource"],
                "kind": row["kind"],
                "count": row["count"],
                "bytes": row["bytes"],
                "amount": _show(row["amount"], decimals),
            }
            for row in rows
        ],
        "total": _show(sum((row["amount"] for row in rows), Decimal(0)), decimals),
    }


def _show(amount: Decimal, decimals: int) -> str:
    return f"{amount:.{decimals}f}"
