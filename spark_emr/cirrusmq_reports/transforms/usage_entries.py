"""The entries of usage records, one row for each, and their oddities."""

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
"""The use of a record is at most this time before its writing, and this time after it."""
WHOLE_RECORD = -1
"""In the column of an entry's index: the row is for the whole record."""
TOO_OLD = "it was written before the first month that the ledger keeps, and may be billed already"
_MINUTE_MS = 60_000
_COUNTS = ("count", "bytes", "attempts")


def usage_entries(
    records: DataFrame, released: Sequence[str] = (), kept_from_ms: int = 0
) -> DataFrame:
    """Returns a row for each entry of a fresh record, and one row for any other record.

    `records` has the columns `record`, `item`, `written_ms`, `shown_ms`, `fresh`. Returns these
    (`item` as JSON, and only in odd rows), and `entry` (its index, or WHOLE_RECORD), `odd` (a
    sentence, or null), `account`, `resource`, `resource_id`, `kind`, `minute`, `count`, `bytes`,
    `attempts`. `released`: records, as hexadecimal digits, that a person accepted although their
    use is not near the time of their writing. `kept_from_ms`: records written earlier are no
    longer in the ledger, and may be billed already.
    """
    let_in = sf.lower(sf.hex("record")).isin(*released) if released else sf.lit(False)
    unreadable = sf.when(
        sf.col("fresh"),
        sf.coalesce(
            sf.when(sf.col("item.records.L").isNull(), sf.lit("records is missing or no list")),
            sf.when(sf.col("written_ms").isNull(), sf.lit("w and expires_at are no whole numbers")),
            sf.when(
                sf.col("written_ms") > sf.col("shown_ms") + LATEST_MS,
                sf.lit("it was written after the export's time"),
            ),
            sf.when(
                (sf.col("written_ms") < kept_from_ms) & ~let_in,
                sf.lit(TOO_OLD),
            ),
        ),
    )
    named = records.withColumn("unreadable", unreadable)
    listed = sf.when(sf.col("fresh") & sf.col("unreadable").isNull(), sf.col("item.records.L"))
    entries = named.select("*", sf.posexplode_outer(listed))
    # A fresh record without entries has no usage.
    kept = entries.where("NOT fresh OR unreadable IS NOT NULL OR pos IS NOT NULL")
    rows = kept.withColumns(
        {
            "entry": sf.coalesce("pos", sf.lit(WHOLE_RECORD)),
            "account": sf.col("col.M.account.S"),
            "resource": sf.col("col.M.resource.S"),
            "resource_id": sf.col("col.M.id.S"),
            "kind": sf.col("col.M.kind.S"),
            "minute": whole("col.M.minute"),
            "count": whole("col.M.count"),
            "bytes": whole("col.M.bytes"),
            "attempts": sf.when(sf.col("col.M.attempts").isNull(), sf.lit(0))
            .otherwise(whole("col.M.attempts"))
            .cast("bigint"),
        }
    )
    of_entry = sf.when(sf.col("pos").isNotNull(), _odd(let_in))
    odd = rows.withColumn("odd", sf.coalesce("unreadable", of_entry))
    # With the whole item in each row, the size would be the square of its entries.
    text = sf.when(sf.col("odd").isNotNull(), sf.to_json("item"))
    return odd.withColumn("item", text).drop("unreadable", "pos", "col")


def _odd(let_in: Column) -> Column:
    """Returns the oddity of an entry as a sentence, or null."""
    used_ms = sf.when(
        sf.abs(sf.col("minute")) <= LARGEST // _MINUTE_MS, sf.col("minute") * _MINUTE_MS
    )
    no_account = ~sf.expr(f"account {IS_ACCOUNT}")
    too_large = reduce(Column.__or__, [sf.abs(sf.col(name)) > LARGEST for name in _COUNTS])
    in_time = used_ms.between(sf.col("written_ms") - EARLIEST_MS, sf.col("written_ms") + LATEST_MS)
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
