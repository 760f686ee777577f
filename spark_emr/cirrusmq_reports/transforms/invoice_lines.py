"""The lines of invoices: by resource, kind, tier, price date and day; then by month."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

_KEYS = (
    "account", "month", "day", "billed", "currency", "resource", "resource_id", "kind", "tier",
    "price_date", "unit_price", "paid",
)  # fmt: skip
_SUMMED = ("quantity", "charge", "count", "bytes")
LINE_SCHEMA = (
    "account STRING, month STRING, used_month STRING, currency STRING, resource STRING, "
    "resource_id STRING, kind STRING, tier INT, price_date STRING, quantity BIGINT, "
    "unit_price DECIMAL(15,15), paid DECIMAL(5,4), charge DECIMAL(38,19), count BIGINT, "
    "bytes BIGINT, reason STRING, tags STRING"
)
"""`month`: the document's; `used_month`: the use's; `tags`: the resource's labels, as JSON."""
DOCUMENT_LINE_SCHEMA = f"{LINE_SCHEMA}, number STRING, line INT"
OPEN_LINE_SCHEMA = f"{LINE_SCHEMA}, used_day STRING"
"""A line of one day; `used_day` is null for a line of the month."""


def invoice_lines(charged: DataFrame) -> DataFrame:
    """Returns the columns of OPEN_LINE_SCHEMA and `billed`, from the rows of `charged_usage`."""
    sums = charged.groupBy(*_KEYS).agg(*[sf.sum(name).alias(name) for name in _SUMMED])
    return sums.select(
        "account",
        "month",
        sf.col("month").alias("used_month"),
        "currency",
        "resource",
        "resource_id",
        "kind",
        "tier",
        "price_date",
        "quantity",
        "unit_price",
        "paid",
        sf.col("charge").cast("DECIMAL(38,19)").alias("charge"),
        "count",
        "bytes",
        sf.lit(None).cast("string").alias("reason"),
        sf.lit(None).cast("string").alias("tags"),
        sf.col("day").alias("used_day"),
        "billed",
    )


def of_months(lines: DataFrame) -> DataFrame:
    """Returns the lines of days as lines of months, without `used_day`."""
    columns = [name for name in lines.columns if name != "used_day"]
    sums = lines.groupBy(*[name for name in columns if name not in _SUMMED]).agg(
        *[sf.sum(name).alias(name) for name in _SUMMED]
    )
    return sums.withColumn("charge", sf.col("charge").cast("DECIMAL(38,19)")).select(columns)
