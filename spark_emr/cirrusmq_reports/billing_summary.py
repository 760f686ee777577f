"""From documents and lines of open months to the answers of `GET /reports/billing`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from heapq import merge
from itertools import groupby
from typing import Any

from cirrusmq_reports.adjustments import MINIMUM, PREFIX, ROUNDING, TAX
from cirrusmq_reports.budgets import budget_states
from cirrusmq_reports.currencies import rounded, shown
from cirrusmq_reports.documents import INVOICE, Terms, least_charges
from cirrusmq_reports.rate_card import KINDS
from cirrusmq_reports.times import DAY_MS, closes_ms, iso_month, iso_time, month_ms, next_month

Row = Mapping[str, Any]
_BUDGET = ("month", "currency", "amount", "spent", "forecast", "state")
_LINE = ("resource", "kind", "correction", "count", "bytes")
_NONE = Decimal(0)
HEADER_FIELDS = ("account", "month", "currency", "number", "type", "refers_to", "total", "run")
"""Columns of a document's row that answers use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Common values of all accounts' answers, and small tables by account."""

    from_ms: int
    to_ms: int
    generated_ms: int
    close_days: int
    gaps: Sequence[tuple[int, int]]
    so_far: Sequence[Row]
    """Rows of `month_so_far`."""
    unusual: Sequence[Row]
    """Rows of `unusual_hours`, with `hour_ms` instead of `hour`."""
    budgets: Mapping[str, Decimal] = field(default_factory=dict)
    terms: Terms = lambda month: None
    """The rate card's tax and minimum charge for open months."""


def billing_summaries(
    lines: Iterable[Row], documents: Iterable[Row], facts: Facts
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields account → its answer: documents, whose lines are elsewhere, and open months.

    `lines`: of open months, one account after the other, then by month and currency: `account`,
    `month`, `currency`, `resource`, `kind`, `used_month`, `count`, `bytes`, `charge`.
    `documents`: HEADER_FIELDS and `line_count`, one account after the other.
    """
    expected = {
        (row["account"], row["currency"]): _expected(row, facts.to_ms) for row in facts.so_far
    }
    budgets = {state["account"]: state for state in states_of(facts)}
    unusual: dict[str, list[Row]] = {}
    for row in facts.unusual:
        unusual.setdefault(row["account"], []).append(_unusual(row))
    head = {
        "from": iso_time(facts.from_ms),
        "to": iso_time(facts.to_ms),
        "generated_at": iso_time(facts.generated_ms),
        "time_zone": "UTC",
        "gaps": [{"from": iso_time(since), "to": iso_time(until)} for since, until in facts.gaps],
    }
    for account, own in groupby(merge(documents, lines, key=_account_of), key=_account_of):
        invoices: list[dict[str, Any]] = []
        charges: list[Row] = []
        for row in own:
            if "line_count" in row:
                invoices.append(_issued(row, facts))
            else:
                charges.append(row)
        for (month, currency), of_month in groupby(charges, key=_month_of):
            more = expected.get((account, currency), _NONE)
            invoices.append(_open(by_resource(of_month), account, month, currency, more, facts))
        invoices.sort(key=lambda each: (each["month"], each["number"] or "", each["currency"]))
        summary: dict[str, Any] = {
            **head,
            "invoices": invoices,
            "unusual": unusual.get(account, []),
        }
        if account in budgets:
            summary["budget"] = {name: budgets[account][name] for name in _BUDGET}
        yield account, summary


def _issued(row: Row, facts: Facts) -> dict[str, Any]:
    """Returns a document without its lines, and the run that has them."""
    currency = row["currency"]
    return {
        "month": row["month"],
        "currency": currency,
        "closed": True,
        "closes_at": iso_time(closes_ms(row["month"], facts.close_days)),
        "forecast": None,
        **{name: row[name] for name in ("number", "type", "refers_to")},
        "total": shown(rounded(row["total"], currency), currency),
        "line_count": row["line_count"],
        "issued_in": row["run"],
    }


def _open(
    charges: list[Row], account: str, month: str, currency: str, more: Decimal, facts: Facts
) -> dict[str, Any]:
    """Returns an open month as if it ended now. `more`: expected charge until its end."""
    own_lines = partial(_own_lines, charges, account, month, currency, facts.terms)
    forecast = None
    if month == iso_month(facts.to_ms):
        forecast = _total([*charges, *own_lines(more)], currency, more)
    lines = [*charges, *own_lines()]
    return {
        "month": month,
        "currency": currency,
        "closed": False,
        "closes_at": iso_time(closes_ms(month, facts.close_days)),
        "forecast": forecast,
        "number": None,
        "type": INVOICE,
        "refers_to": None,
        "lines": [line_of(row, currency) for row in lines],
        "total": _total(lines, currency),
    }


def by_resource(rows: Iterable[Row]) -> list[Row]:
    """Returns the lines of a document in their order: lines without a resource are last."""
    return sorted(rows, key=lambda row: not row["resource"])


def states_of(facts: Facts) -> list[dict[str, Any]]:
    """Returns the budgets of the running month."""
    month = iso_month(facts.to_ms)
    return budget_states(
        facts.budgets, facts.so_far, month, lambda row: _forecast(row, facts.to_ms)
    )


def _forecast(row: Row, to_ms: int) -> str:
    """Returns the running month's charges if use continues as in the last day."""
    currency = str(row["currency"])
    return shown(rounded(row["so_far"] + _expected(row, to_ms), currency), currency)


def _expected(row: Row, to_ms: int) -> Decimal:
    """Returns the charge for the rest of the month if each day is like the last one."""
    left_ms = month_ms(next_month(iso_month(to_ms))) - to_ms
    charge: Decimal = row["last_day"] * Decimal(left_ms) / DAY_MS
    return charge


def _total(rows: Iterable[Row], currency: str, more: Decimal = _NONE) -> str:
    """Returns the sum of these lines and of `more`, as text."""
    return shown(rounded(sum((row["charge"] for row in rows), more), currency), currency)


def _account_of(row: Row) -> str:
    return str(row["account"])


def _month_of(row: Row) -> tuple[str, str]:
    return row["month"], row["currency"]


def line_of(row: Row, currency: str) -> dict[str, Any]:
    """Returns a line as the answer has it."""
    values = {**row, "correction": row["used_month"] if row["used_month"] != row["month"] else None}
    amount = shown(row["charge"], currency)
    return {**{name: values[name] for name in _LINE}, "amount": amount}


def _own_lines(
    rows: Sequence[Row],
    account: str,
    month: str,
    currency: str,
    terms: Terms,
    more: Decimal = _NONE,
) -> list[Row]:
    """Returns the lines that a document would add if the open month ended now.

    `more`: expected charge of the use until the month's end.
    """
    use = [
        row["charge"]
        for row in rows
        if row["used_month"] == month
        and row["kind"] in KINDS
        and not row["resource"].startswith(PREFIX)
    ]
    key = account, currency, month
    lack = least_charges({key: sum(use, more)}, {}, terms).get(key, _NONE) if use else _NONE
    exact = sum((row["charge"] for row in rows), lack + more)
    net = rounded(exact, currency)
    entry = terms(month)
    percent = entry.tax.of(account) if entry and entry.tax else 0
    own = {MINIMUM: lack, ROUNDING: net - exact, TAX: rounded(net * percent / 100, currency)}
    none = {"resource": "", "month": month, "used_month": month, "count": 0, "bytes": 0}
    return [{**none, "kind": kind, "charge": Decimal(own[kind])} for kind in own if own[kind]]


def _unusual(row: Row) -> dict[str, Any]:
    figures = {name: row[name] for name in ("resource", "kind", "count", "usual_most")}
    return {"hour": iso_time(row["hour_ms"]), **figures}
