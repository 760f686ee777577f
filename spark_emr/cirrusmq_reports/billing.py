"""Usage and its charges: pure transforms from usage records to invoices."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import refuse, refuse_saying, whole
from cirrusmq_reports.rate_card import RateCard
from cirrusmq_reports.schemas import LAST_MINUTE

USAGE_SCHEMA = (
    "account STRING, resource STRING, kind STRING, hour TIMESTAMP, count BIGINT, bytes BIGINT, "
    "attempts BIGINT, charge DECIMAL(38,15), shown_to_ms BIGINT, day STRING"
)
INVOICE_SCHEMA = (
    "account STRING, resource STRING, kind STRING, count BIGINT, bytes BIGINT, attempts BIGINT, "
    "amount DECIMAL(38,6), currency STRING, month STRING"
)

_EXACT_COUNT = "DECIMAL(19,0)"
_EXACT_PRICE = "DECIMAL(15,15)"
_CHARGE = "DECIMAL(38,15)"


def usage_entries(items: DataFrame) -> DataFrame:
    """Column `item` of Usage → one row an entry of a usage record.

    Columns `account`, `resource`, `kind`, `minute`, `count`, `bytes`, `attempts`.
    Counters, which are in the same table, are left out.
    """
    records = items.where(sf.substring("item.pk.S", 1, 2) == "U#")
    lacking = sf.col("item.records.L").isNull() | whole("item.expires_at").isNull()
    sound = records.where(refuse(lacking))
    entries = sound.select(sf.explode("item.records.L").alias("entry")).select("entry.M.*")
    countable = entries.where(
        refuse(sf.expr("attempts IS NOT NULL AND try_cast(attempts.N AS BIGINT) IS NULL"))
    )
    rows = countable.select(
        sf.col("account.S").alias("account"),
        sf.col("resource.S").alias("resource"),
        sf.col("kind.S").alias("kind"),
        whole("minute").alias("minute"),
        whole("count").alias("count"),
        whole("bytes").alias("bytes"),
        sf.coalesce(whole("attempts"), sf.lit(0)).alias("attempts"),
    )
    return rows.where(refuse(sf.expr(_LACKING)))


_LACKING = (
    "account IS NULL OR resource IS NULL OR kind IS NULL OR count IS NULL OR bytes IS NULL "
    f"OR minute IS NULL OR minute NOT BETWEEN 0 AND {LAST_MINUTE}"
)


def hourly_usage(entries: DataFrame) -> DataFrame:
    """Sums by `account`, `resource`, `kind` and `hour` (its start, UTC), with its `day`."""
    hour = sf.timestamp_seconds(sf.floor(sf.col("minute") / 60) * 3600)
    sums = entries.withColumn("hour", hour).groupBy("account", "resource", "kind", "hour")
    totals = sums.agg(*[sf.sum(name).alias(name) for name in ("count", "bytes", "attempts")])
    return totals.withColumn("day", sf.date_format("hour", "yyyy-MM-dd"))


def charged(hourly: DataFrame, card: RateCard, to_ms: int) -> DataFrame:
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


def daily_charges(usage: DataFrame) -> DataFrame:
    """Columns `day`, `account`, `kind`, `count`, `charge`: for the page's charts."""
    return usage.groupBy("day", "account", "kind").agg(
        sf.sum("count").alias("count"), sf.sum("charge").alias("charge")
    )


def _price(prices: Mapping[str, Decimal]) -> Column:
    price = sf.lit(Decimal(0)).cast(_EXACT_PRICE)
    for kind, amount in prices.items():
        exact = sf.lit(f"{amount:f}").cast(_EXACT_PRICE)
        price = sf.when(sf.col("kind") == kind, exact).otherwise(price)
    return price
