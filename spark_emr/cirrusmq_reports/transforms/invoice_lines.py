"""The lines of invoices: a month of one resource and kind each."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

INVOICE_SCHEMA = (
    "account STRING, month STRING, currency STRING, resource STRING, kind STRING, "
    "correction STRING, count BIGINT, bytes BIGINT, amount DECIMAL(38,6)"
)


def invoice_lines(usage: DataFrame, decimals: int) -> DataFrame:
    """The columns of INVOICE_SCHEMA: a line an account, month, currency, resource and kind.

    `correction` is the month of the use where that was closed already, else null. Here, and
    nowhere before, an amount is rounded: half up.
    """
    used = sf.substring("day", 1, 7)
    correction = sf.when(used != sf.col("month"), used)
    monthly = usage.groupBy(
        "account", "month", "currency", "resource", "kind", correction.alias("correction")
    ).agg(*[sf.sum(name).alias(name) for name in ("count", "bytes", "charge")])
    return monthly.select(
        "account",
        "month",
        "currency",
        "resource",
        "kind",
        "correction",
        "count",
        "bytes",
        sf.round("charge", decimals).cast("DECIMAL(38,6)").alias("amount"),
    )
