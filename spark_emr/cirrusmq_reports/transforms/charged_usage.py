"""Usage by the hour, with its charge."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import refuse_saying
from cirrusmq_reports.rate_card import RateCard

USAGE_SCHEMA = (
    "account STRING, resource STRING, kind STRING, hour TIMESTAMP, count BIGINT, bytes BIGINT, "
    "attempts BIGINT, charge DECIMAL(38,15), shown_to_ms BIGINT, day STRING"
)

_EXACT_COUNT = "DECIMAL(19,0)"
_EXACT_PRICE = "DECIMAL(15,15)"
_CHARGE = "DECIMAL(38,15)"


def charged_usage(hourly: DataFrame, card: RateCard, to_ms: int) -> DataFrame:
    """The columns of USAGE_SCHEMA: `charge` is exact, in the card's currency.

    `shown_to_ms` is `to_ms`, the end of the exports, for later reports.
    """
    by_count = sf.col("count").cast(_EXACT_COUNT) * _price(card.per_message)
    by_bytes = sf.col("bytes").cast(_EXACT_COUNT) * _price(card.per_byte)
    unpriced = refuse_saying(
        sf.concat(sf.lit(f"{card.path}: it has no price for the kind "), sf.col("kind"))
    )
    charge = sf.when(sf.col("kind").isin(*card.per_message), by_count + by_bytes)
    return hourly.select(
        "account",
        "resource",
        "kind",
        "hour",
        "count",
        "bytes",
        "attempts",
        sf.coalesce(charge, unpriced.cast(_CHARGE)).cast(_CHARGE).alias("charge"),
        sf.lit(to_ms).cast("bigint").alias("shown_to_ms"),
        "day",
    )


def _price(prices: Mapping[str, Decimal]) -> Column:
    price = sf.lit(Decimal(0)).cast(_EXACT_PRICE)
    for kind, amount in prices.items():
        exact = sf.lit(f"{amount:f}").cast(_EXACT_PRICE)
        price = sf.when(sf.col("kind") == kind, exact).otherwise(price)
    return price
