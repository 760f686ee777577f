"""Merges parts of the ledger and of usage into one for each month: pointers stay short.

A nightly run adds a part for each shown day of writing, and one of usage. Long after a month's
documents are issued no run adds to it any more::

    pointer   2026-09-01, 2026-09-02 … 2026-09-30, 2026-10-01 …     14 November: 45 days are over
              2026-09, 2026-10-01 …

Folded parts stay on disk as long as the previous pointer names them.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports.publication import FOLDED, Outputs, Part
from cirrusmq_reports.times import DAY_MS, iso_month, month_ms, next_month
from cirrusmq_reports.transforms.usage_by_hour import USAGE_SCHEMA
from cirrusmq_reports.transforms.usage_records import LEDGER_SCHEMA

LEDGER, USAGE_TABLE = "ledger", "usage"
FOLD_DAYS = 45
"""Days after a month's end: a window shows records of 41 days ago, as TTL removes them."""
_STRAYS_MOST = 10
"""Late parts of a folded month: the month is folded again only for more than these."""
_MONTH_LENGTH = len("2026-11")


@dataclass(frozen=True, slots=True)
class Fold:
    """The parts of a table that are merged into one."""

    table: str
    month: str
    parts: Sequence[Part]


def folds(parts: Iterable[Part], closed: Mapping[str, int], to_ms: int) -> list[Fold]:
    """Returns the parts to fold at the end `to_ms` of the newest export.

    `closed`: month with issued invoices → the last run whose rows are on its documents. Usage that
    is on no document yet is not folded: its part has the number of a later run.
    """
    by_month: dict[tuple[str, str], list[Part]] = {}
    for part in parts:
        month = part.part[:_MONTH_LENGTH]
        over = month in closed and to_ms >= month_ms(next_month(month)) + FOLD_DAYS * DAY_MS
        billed = part.dataset == LEDGER or 0 < part.sequence <= closed.get(month, 0)
        if over and billed and part.dataset in (LEDGER, USAGE_TABLE):
            by_month.setdefault((part.dataset, month), []).append(part)
    return [
        Fold(table, month, found)
        for (table, month), found in sorted(by_month.items())
        if len(found) > 1 + (_STRAYS_MOST if _is_folded(table, found) else 0)
    ]


def within(parts: Iterable[Part], days: Iterable[str]) -> list[Part]:
    """Returns the parts of the ledger that have records of these days of writing."""
    wanted = {*days}
    wanted |= {day[:_MONTH_LENGTH] for day in wanted}
    return [part for part in parts if part.part in wanted]


def oldest_kept(to_ms: int, months: int) -> str:
    """Returns the oldest month that the ledger keeps: `months` full months, and the running one."""
    year, number = map(int, iso_month(to_ms).split("-"))
    count = max(0, year * 12 + number - 1 - months)
    return f"{count // 12:04d}-{count % 12 + 1:02d}"


def kept_parts(parts: Iterable[Part], oldest: str) -> list[Part]:
    """Returns the parts of the ledger that are of `oldest` or later."""
    return [part for part in parts if part.part[:_MONTH_LENGTH] >= oldest]


def fold(spark: SparkSession, outputs: Outputs, found: Sequence[Fold]) -> list[Part]:
    """Writes each fold as one part. Returns the parts. Raises OSError if rows were lost."""
    written: list[Part] = []
    for table in (LEDGER, USAGE_TABLE):
        own = [each for each in found if each.table == table]
        if own:
            written += _fold_table(spark, outputs, table, own)
    return written


def _fold_table(
    spark: SparkSession, outputs: Outputs, table: str, found: Sequence[Fold]
) -> list[Part]:
    parts = [part for each in found for part in each.parts]
    if table == LEDGER:
        rows = outputs.read(spark, parts, LEDGER_SCHEMA)
        month = sf.substring("written_day", 1, _MONTH_LENGTH)
        # Each file has few days, so that a search for a day skips the other files.
        made = outputs.write(
            rows.withColumn("folded", month), table, "folded", near="written_day", folded=True
        )
        if sum(part.row_count for part in made) != sum(part.row_count for part in parts):
            raise OSError(errno.EIO, "the folded ledger has not as many rows as its parts", table)
        return made
    rows = outputs.read(spark, parts, USAGE_SCHEMA)
    keys = [name for name in rows.columns if name not in ("count", "bytes")]
    sums = rows.groupBy(*keys).agg(*[sf.sum(name).alias(name) for name in ("count", "bytes")])
    numbers = {each.month: max(part.sequence for part in each.parts) for each in found}
    # A sum of zero is kept, too: it shows that the month was used.
    made = outputs.write(sums.select(rows.columns), table, "month", folded=True)
    return [replace(part, sequence=numbers[part.part]) for part in made]


def _is_folded(table: str, parts: Sequence[Part]) -> bool:
    if table == LEDGER:
        return any(len(part.part) == _MONTH_LENGTH for part in parts)
    return any(part.run.endswith(FOLDED) for part in parts)
