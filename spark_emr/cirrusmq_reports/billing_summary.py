"""From lines of documents and open months to the answers of `GET /reports/billing`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the answers of all accounts have in common, and small tables by account."""

    from_ms: int
    to_ms: int
    generated_ms: int
    close_days: int
    gaps: Sequence[tuple[int, int]]
    documents: Mapping[str, Row]
    """Number → the document's row."""
    so_far: Sequence[Row]
    """Of `month_so_far`."""
    unusual: Sequence[Row]
    """Of `unusual_hours`, with `hour_ms` for `hour`."""
    budgets: Mapping[str, Decimal] = field(default_factory=dict)
    terms: Terms = lambda month: None
    """Of the rate card: the tax and the minimum charge that open months will have."""


def billing_summaries(rows: Iterable[Row], facts: Facts) -> Iterator[tuple[str, dict[str, Any]]]:
    """Account → its answer: a document each, and the open months.

    `rows`: lines of one account after the other, then by month and document: `account`, `month`,
    `number` ("" = open), `currency`, `resource`, `kind`, `used_month`, `count`, `bytes`, `charge`.
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
    running = iso_month(facts.to_ms)
    own: dict[str, Any]
    for account, of_account in groupby(rows, key=lambda row: str(row["account"])):
        invoices = []
        for (month, number, currency), of_document in groupby(of_account, key=_document_of):
            # Those that are of no resource at the end.
            charges = sorted(of_document, key=lambda row: not row["resource"])
            forecast = None
            if not number:
                own_lines = partial(_own_lines, charges, account, month, currency, facts.terms)
                if month == running:
                    more = expected.get((account, currency), Decimal(0))
                    forecast = _total([*charges, *own_lines(more)], currency, more)
                charges += own_lines()
            made = facts.documents.get(number, _OPEN)
            invoices.append(
                {
                    "month": month,
                    "currency": currency,
                    "closed": bool(number),
                    "closes_at": iso_time(closes_ms(month, facts.close_days)),
                    "forecast": forecast,
                    **{name: made[name] for name in ("number", "type", "refers_to")},
                    "lines": [_line(row, currency) for row in charges],
                    "total": _total(charges, currency),
                }
            )
        own = {"invoices": invoices, "unusual": unusual.get(account, [])}
        if account in budgets:
            own["budget"] = {name: budgets[account][name] for name in _BUDGET}
        yield account, {**head, **own}


def states_of(facts: Facts) -> list[dict[str, Any]]:
    """The budgets of the running month."""
    month = iso_month(facts.to_ms)
    return budget_states(
        facts.budgets, facts.so_far, month, lambda row: _forecast(row, facts.to_ms)
    )


_OPEN: Row = {"number": None, "type": INVOICE, "refers_to": None}


def _forecast(row: Row, to_ms: int) -> str:
    """The running month's charges of use if use goes on as in the last day."""
    currency = str(row["currency"])
    return shown(rounded(row["so_far"] + _expected(row, to_ms), currency), currency)


def _expected(row: Row, to_ms: int) -> Decimal:
    """What the rest of the month is charged if each day is like the last one."""
    left_ms = month_ms(next_month(iso_month(to_ms))) - to_ms
    charge: Decimal = row["last_day"] * Decimal(left_ms) / DAY_MS
    return charge


def _total(rows: Iterable[Row], currency: str, more: Decimal = _NONE) -> str:
    """The sum of these lines, and of `more`, as it is shown."""
    return shown(rounded(sum((row["charge"] for row in rows), more), currency), currency)


def _document_of(row: Row) -> tuple[str, str, str]:
    return row["month"], row["number"], row["currency"]


def _line(row: Row, currency: str) -> dict[str, Any]:
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
    """The lines that the document will have by itself: as if the open month ended now.

    `more`: what use that is still to come is charged.
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
