"""How much of each kind closed invoices have billed, by the month of its use."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.transforms.charged_usage import volume_column


def billed_volumes(closed: DataFrame) -> DataFrame:
    """Columns `account`, `kind`, `used_month`, `billed_volume`, of the usage of closed months."""
    rows = closed.select(
        "account",
        "kind",
        sf.substring("day", 1, 7).alias("used_month"),
        volume_column().alias("volume"),
    )
    return rows.groupBy("account", "kind", "used_month").agg(
        sf.sum("volume").alias("billed_volume")
    )
