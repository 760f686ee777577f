"""Usage by the hour, with its charge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import refuse_saying
from cirrusmq_reports.rate_card import KEPT, KINDS, Prices, RateCard, Tier

USAGE_SCHEMA = (
    "account STRING, resource STRING, kind STRING, hour TIMESTAMP, day STRING, month STRING, "
    "count BIGINT, bytes BIGINT, currency STRING, charge DECIMAL(38,19), shown_to_ms BIGINT"
)

_EXACT_COUNT = "DECIMAL(19,0)"
_EXACT_PRICE = "DECIMAL(15,15)"
_LISTED = "DECIMAL(30,15)"
_PART_PAID = "DECIMAL(5,4)"
_CHARGE = "DECIMAL(38,19)"


def charged_usage(usage: DataFrame, billed: DataFrame, card: RateCard) -> DataFrame:
    """The columns of USAGE_SCHEMA: `charge` is exact, with the prices of the hour's day.

    `usage` has the columns of `open_usage`, `billed` those of `billed_volumes`. A tier begins
    where the account's use of a kind in a month reaches it, in the order of hours; what is billed
    in a later month continues behind what that month had::

        volume of the month   0 ──────── free ────────────── above ───────────
        hours of resources    | 1 | 2 | 3 |  4  (a part of it free)  | 5 | …
    """
    used = sf.substring("day", 1, 7)
    volume = volume_column()
    in_order = (
        Window.partitionBy("account", "kind", "used_month")
        .orderBy("month", "hour", "resource")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    rows = usage.withColumns({"used_month": used, "volume": volume}).join(
        sf.broadcast(billed), ["account", "kind", "used_month"], "left"
    )
    begin = sf.coalesce("billed_volume", sf.lit(0))
    volumes = rows.withColumn("until", begin + sf.sum("volume").over(in_order))
    volumes = volumes.withColumn("since", sf.col("until") - sf.col("volume"))
    listed = _dated(card, lambda prices: _by_kind(card, prices)).cast(_LISTED)
    paid = _dated(card, _part_paid).cast(_PART_PAID)
    return volumes.select(
        "account",
        "resource",
        "kind",
        "hour",
        "day",
        "month",
        "count",
        "bytes",
        _dated(card, lambda prices: sf.lit(prices.currency)).alias("currency"),
        (listed * paid).cast(_CHARGE).alias("charge"),
        "shown_to_ms",
    )


def volume_column() -> Column:
    """The volume that tiers are made of: bytes of what is kept, else messages."""
    return sf.when(sf.col("kind") == KEPT, sf.col("bytes")).otherwise(sf.col("count"))


def _dated(card: RateCard, value: Callable[[Prices], Column]) -> Column:
    """The value of the prices that the hour's day has."""
    said = sf.concat(sf.lit(f"{card.path}: it has no prices for the day "), sf.col("day"))
    chosen = refuse_saying(said)
    for prices in card.prices:
        begin = sf.lit(datetime.fromtimestamp(prices.from_ms / 1000, UTC).isoformat())
        reached = sf.col("hour") >= begin.cast("timestamp")
        chosen = sf.when(reached, value(prices)).otherwise(chosen)
    return chosen


def _by_kind(card: RateCard, prices: Prices) -> Column:
    said = sf.concat(sf.lit(f"{card.path}: it has no price for the kind "), sf.col("kind"))
    charge = refuse_saying(said).cast(_LISTED)
    for kind in KINDS:
        charge = sf.when(sf.col("kind") == kind, _tiered(prices.tiers[kind])).otherwise(charge)
    return charge


def _tiered(tiers: Sequence[Tier]) -> Column:
    """The charge from `since` to `until`: each tier's part of it, signed, at the tier's price."""
    parts = []
    for place, tier in enumerate(tiers):
        # Signed counting may go below 0 for a while: the first tier has no lower end.
        low = tier.above if place else None
        high = tiers[place + 1].above if place + 1 < len(tiers) else None
        width = _within("until", low, high) - _within("since", low, high)
        price = sf.lit(f"{tier.price:f}").cast(_EXACT_PRICE)
        parts.append(width.cast(_EXACT_COUNT) * price)
    charge = parts[0]
    for part in parts[1:]:
        charge = charge + part
    return charge.cast(_LISTED)


def _within(name: str, low: int | None, high: int | None) -> Column:
    value = sf.col(name)
    if low is not None:
        value = sf.greatest(value, sf.lit(low))
    return value if high is None else sf.least(value, sf.lit(high))


def _part_paid(prices: Prices) -> Column:
    paid = sf.lit("1").cast(_PART_PAID)
    for account, discount in prices.discounts.items():
        exact = sf.lit(f"{1 - discount:f}").cast(_PART_PAID)
        paid = sf.when(sf.col("account") == account, exact).otherwise(paid)
    return paid
