"""Sums of all accounts' answers, for the tiles, bars and unusual hours of the billing page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from heapq import nlargest
from typing import Any

from cirrusmq_reports.adjustments import PREFIX
from cirrusmq_reports.rate_card import KINDS

Row = Mapping[str, Any]
ROWS_SHOWN, UNUSUAL_SHOWN = 12, 100
"""Bars of a chart, and unusual hours: however many accounts there are, no more are kept."""


@dataclass(slots=True)
class Total:
    """All invoices of one currency."""

    amount: Decimal = Decimal(0)
    forecast: Decimal = Decimal(0)
    issued: int = 0
    """Documents."""
    open: int = 0
    """Months of accounts that are not closed."""
    counts: Counter[str] = field(default_factory=Counter)
    """Kind → messages."""
    accounts: list[tuple[Decimal, str]] = field(default_factory=list)
    """The dearest."""
    resources: list[tuple[Decimal, str, Mapping[str, Decimal]]] = field(default_factory=list)
    """The dearest: charge, account and resource, kind → charge."""

    def add(self, account: str, invoices: Iterable[Row]) -> None:
        """Take an account's invoices of this currency, all at once."""
        own = Decimal(0)
        charges: dict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
        for invoice in invoices:
            own += Decimal(invoice["total"])
            self.forecast += Decimal(invoice["forecast"] or 0)
            self.issued += bool(invoice["closed"])
            self.open += not invoice["closed"]
            for line in filter(is_use, invoice["lines"]):
                self.counts[line["kind"]] += line["count"]
                name = f"{account} · {line['resource']}"
                charges[name][line["kind"]] += Decimal(line["amount"])
        self.amount += own
        self.accounts = nlargest(ROWS_SHOWN, [*self.accounts, (own, account)], key=_first)
        sums = [(sum(of.values(), Decimal(0)), name, of) for name, of in charges.items()]
        self.resources = nlargest(ROWS_SHOWN, [*self.resources, *sums], key=_first)


@dataclass(slots=True)
class Sums:
    """All accounts' answers, one after the other."""

    accounts: int = 0
    currencies: dict[str, Total] = field(default_factory=dict)
    unusual: list[tuple[str, Row]] = field(default_factory=list)
    """Account and hour: the first ones."""
    unusual_more: int = 0

    def add(self, account: str, summary: Row) -> None:
        """Take an account's answer."""
        self.accounts += 1
        for currency in sorted({each["currency"] for each in summary["invoices"]}):
            own = [each for each in summary["invoices"] if each["currency"] == currency]
            self.currencies.setdefault(currency, Total()).add(account, own)
        room = UNUSUAL_SHOWN - len(self.unusual)
        self.unusual += [(account, hour) for hour in summary["unusual"][:room]]
        self.unusual_more += len(summary["unusual"][room:])


def is_use(line: Row) -> bool:
    """Whether a line is of a resource's use: no adjustment, tax, rounding or minimum charge."""
    return line["kind"] in KINDS and not line["resource"].startswith(PREFIX)


def _first(entry: tuple[Any, ...]) -> Decimal:
    amount: Decimal = entry[0]
    return amount
