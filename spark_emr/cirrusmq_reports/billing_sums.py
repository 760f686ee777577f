"""Sums of all accounts' answers, for the tiles, bars and unusual hours of the billing page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from heapq import nlargest
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.adjustments import PREFIX
from cirrusmq_reports.rate_card import KINDS

Row = Mapping[str, Any]
ROWS_SHOWN, UNUSUAL_SHOWN = 12, 100
"""Maximum bars of a chart and unusual hours that are kept, for any number of accounts."""


@dataclass(slots=True)
class Total:
    """All invoices of one currency."""

    amount: Decimal = Decimal(0)
    forecast: Decimal = Decimal(0)
    issued: int = 0
    """Documents."""
    open: int = 0
    """Number of open months of accounts."""
    counts: Counter[str] = field(default_factory=Counter)
    """Kind → number of messages."""
    accounts: list[tuple[Decimal, str]] = field(default_factory=list)
    """The accounts with the highest charges."""
    resources: Sequence[tuple[str, Mapping[str, Decimal]]] = ()
    """The resources with the highest charges: account and resource, kind → charge."""

    def add(self, account: str, invoices: Iterable[Row]) -> None:
        """Adds all of an account's invoices in this currency."""
        own = Decimal(0)
        for invoice in invoices:
            own += Decimal(invoice["total"])
            self.forecast += Decimal(invoice["forecast"] or 0)
            self.issued += bool(invoice["closed"])
            self.open += not invoice["closed"]
        self.amount += own
        self.accounts = nlargest(
            ROWS_SHOWN, [*self.accounts, (own, account)], key=lambda entry: entry[0]
        )


@dataclass(slots=True)
class Sums:
    """All accounts' answers, one after the other, and all lines together."""

    accounts: int = 0
    currencies: dict[str, Total] = field(default_factory=dict)
    unusual: list[tuple[str, Row]] = field(default_factory=list)
    """The first accounts and hours."""
    unusual_more: int = 0

    def add(self, account: str, summary: Row) -> None:
        """Adds an account's answer."""
        self.accounts += 1
        for currency in sorted({each["currency"] for each in summary["invoices"]}):
            own = [each for each in summary["invoices"] if each["currency"] == currency]
            self._of(currency).add(account, own)
        room = UNUSUAL_SHOWN - len(self.unusual)
        self.unusual += [(account, hour) for hour in summary["unusual"][:room]]
        self.unusual_more += len(summary["unusual"][room:])

    def add_lines(self, lines: DataFrame) -> None:
        """Adds the lines of all accounts.

        Columns: `account`, `currency`, `resource`, `kind`, `count`, `charge`. Spark sums them, and
        the driver gets a few rows for each currency.
        """
        used = lines.where(_is_use())
        kinds = used.groupBy("currency", "kind").agg(sf.sum("count").alias("messages"))
        for row in kinds.collect():
            self._of(row["currency"]).counts[row["kind"]] += row["messages"]
        keys = ("currency", "account", "resource")
        of_kinds = used.groupBy(*keys, "kind").agg(sf.sum("charge").alias("charge"))
        pairs = sf.collect_list(sf.struct("kind", "charge")).alias("kinds")
        resources = of_kinds.groupBy(*keys).agg(sf.sum("charge").alias("total"), pairs)
        dearest = resources.orderBy(sf.desc("total"), "account", "resource")
        for currency, total in self.currencies.items():
            total.resources = [
                (f"{row['account']} · {row['resource']}", dict(row["kinds"]))
                for row in dearest.where(sf.col("currency") == currency).limit(ROWS_SHOWN).collect()
            ]

    def _of(self, currency: str) -> Total:
        return self.currencies.setdefault(currency, Total())


def is_use(line: Row) -> bool:
    """Returns True if a line is of use, not an adjustment, tax, rounding or minimum charge."""
    return line["kind"] in KINDS and not line["resource"].startswith(PREFIX)


def _is_use() -> Column:
    return sf.col("kind").isin(*KINDS) & ~sf.col("resource").startswith(PREFIX)
