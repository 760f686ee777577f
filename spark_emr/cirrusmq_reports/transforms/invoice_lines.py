"""The lines of invoices: a month of one resource and kind each."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.rate_card import RateCard

INVOICE_SCHEMA = (
    "account STRING, resource STRING, kind STRING, count BIGINT, bytes BIGINT, attempts BIGINT, "
    "amount DECIMAL(38,6), currency STRING, month STRING"
)


def invoice_lines(usage: DataFrame, card: RateCard) -> DataFrame:
    """The columns of INVOICE_SCHEMA: a line an account, month, resource and kind.

    Here, and nowhere before, an amount is rounded: half up, to the card's places.
    """
    monthly = usage.groupBy(
        "account", "resource", "kind", sf.substring("day", 1, 7).alias("month")
    ).agg(
        *[sf.sum(name).alias(name) for name in ("count", "bytes", "attempts")],
        sf.sum("charge").alias("charge"),
    )
    return monthly.select(
        "account",
        "resource",
        "kind",
        "count",
        "bytes",
        "attempts",
        sf.round("charge", card.decimals).cast("DECIMAL(38,6)").alias("amount"),
        sf.lit(card.currency).alias("currency"),
        "month",
    )
