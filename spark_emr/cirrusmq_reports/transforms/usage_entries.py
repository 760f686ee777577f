"""The entries of usage records, a row each, and what is odd about them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import whole
from cirrusmq_reports.rate_card import KINDS
from cirrusmq_reports.schemas import IS_ACCOUNT, LARGEST
from cirrusmq_reports.times import HOUR_MS

EARLIEST_MS, LATEST_MS = 26 * HOUR_MS, 2 * 60_000
"""A record is of use at most so long before its writing, and so little after it."""
WHOLE_RECORD = -1
"""In the place of an entry's index."""
_MINUTE_MS = 60_000
_COUNTS = ("count", "bytes", "attempts")


def usage_entries(records: DataFrame, released: Sequence[str] = ()) -> DataFrame:
    """One row an entry of each record; a record that cannot be read is one row.

    `records` has the columns `record` and those of `first`. Returns them, and `entry` (its index,
    or WHOLE_RECORD), `odd` (a sentence, or null), `account`, `resource`, `resource_id`, `kind`,
    `minute`, `count`, `bytes`, `attempts`. `released`: records, as hexadecimal digits, that a
    person lets in, although their use is not near the time of their writing.
    """
    unreadable = sf.coalesce(
        sf.when(sf.col("item.records.L").isNull(), sf.lit("records is missing or no list")),
        sf.when(sf.col("written_ms").isNull(), sf.lit("w and expires_at are no whole numbers")),
        sf.when(
            sf.col("written_ms") > sf.col("shown_ms") + LATEST_MS,
            sf.lit("it was written after the export's time"),
        ),
    )
    entries = records.select(
        "*", unreadable.alias("unreadable"), sf.posexplode_outer("item.records.L")
    )
    whole_record = sf.col("unreadable").isNotNull()
    # One row is enough for a record that is set aside whole; one without entries has no use.
    kept = sf.when(whole_record, sf.coalesce("pos", sf.lit(0)) == 0).otherwise(
        sf.col("pos").isNotNull()
    )
    rows = entries.where(kept).select(
        *records.columns,
        sf.when(whole_record, sf.lit(WHOLE_RECORD)).otherwise(sf.col("pos")).alias("entry"),
        "unreadable",
        sf.col("col.M.account.S").alias("account"),
        sf.col("col.M.resource.S").alias("resource"),
        sf.col("col.M.id.S").alias("resource_id"),
        sf.col("col.M.kind.S").alias("kind"),
        whole("col.M.minute").alias("minute"),
        whole("col.M.count").alias("count"),
        whole("col.M.bytes").alias("bytes"),
        sf.when(sf.col("col.M.attempts").isNull(), sf.lit(0))
        .otherwise(whole("col.M.attempts"))
        .cast("bigint")
        .alias("attempts"),
    )
    return rows.withColumn("odd", sf.coalesce("unreadable", _odd(released))).drop("unreadable")


def _odd(released: Sequence[str]) -> Column:
    """What is odd about an entry; null if nothing is."""
    used_ms = sf.when(
        sf.abs(sf.col("minute")) <= LARGEST // _MINUTE_MS, sf.col("minute") * _MINUTE_MS
    )
    no_account = ~sf.expr(f"account {IS_ACCOUNT}")
    too_large = reduce(Column.__or__, [sf.abs(sf.col(name)) > LARGEST for name in _COUNTS])
    in_time = used_ms.between(sf.col("written_ms") - EARLIEST_MS, sf.col("written_ms") + LATEST_MS)
    let_in = sf.lower(sf.hex("record")).isin(*released) if released else sf.lit(False)
    faults = [
        *[
            (sf.col(name).isNull(), f"{name} is missing or of another type")
            for name in ("account", "resource", "kind", "minute", *_COUNTS)
        ],
        (no_account, "account is no account's name"),
        (~sf.col("kind").isin(*KINDS), "kind is not known to this release"),
        (too_large, "a number is too large"),
        (sf.abs(sf.col("minute")) > LARGEST // _MINUTE_MS, "minute is too large"),
        (~in_time & ~let_in, "minute is not near the time of its writing"),
    ]
    return sf.coalesce(*[sf.when(fault, sf.lit(said)) for fault, said in faults])
