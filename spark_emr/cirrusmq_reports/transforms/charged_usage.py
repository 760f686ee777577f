"""Usage by the hour with its charge: each row has one tier and one price date."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import refuse_saying
from cirrusmq_reports.rate_card import KEPT, Prices, RateCard
from cirrusmq_reports.times import iso_day

_EXACT_COUNT = "DECIMAL(19,0)"
UNIT_PRICE = "DECIMAL(15,15)"
_LISTED = "DECIMAL(30,15)"
PART_PAID = "DECIMAL(5,4)"
CHARGE = "DECIMAL(38,19)"
_TIERS = f"array<struct<above:bigint,below:bigint,price:{UNIT_PRICE}>>"
_PLACE = ("account", "kind", "month", "billed", "hour")


def charged_usage(usage: DataFrame, card: RateCard) -> DataFrame:
    """Returns usage with its tiers and charges.

    Adds `currency`, `tier` (from 1), `price_date`, `quantity`, `unit_price`, `paid`, `charge`.

    `usage`: the columns of USAGE_SCHEMA, and `billed`: true if documents have it. A tier begins
    when the account's use of a kind in a month reaches it: billed use is first, then hour by hour.
    Resources are ordered only in an hour in which a tier begins::

        volume of the month   0 ──────── free ────────────── above ───────────
        hours                 |  1  |  2  |  3: by resource  |  4  |  5  | …
    """
    keys = ("resource", "resource_id", "day")
    sums = usage.groupBy(*_PLACE, *keys).agg(
        *[sf.sum(name).alias(name) for name in ("count", "bytes")]
    )
    volume = sf.when(sf.col("kind") == KEPT, sf.col("bytes")).otherwise(sf.col("count"))
    rows = sums.where("count != 0 OR bytes != 0").withColumns(
        {"volume": volume, "tiers": _dated(card, _tiers).cast(_TIERS)}
    )
    placed = rows.join(_running(rows), [*_PLACE], "inner")
    low, high = sf.least("since", "until"), sf.greatest("since", "until")
    crossed = sf.exists("tiers", lambda tier: (tier["above"] > low) & (tier["above"] < high))
    placed = placed.withColumn("crossed", sf.coalesce(crossed, sf.lit(False)))
    index = sf.size(sf.filter("tiers", lambda tier: tier["above"] <= low))
    plain = placed.where("NOT crossed").withColumn(
        "pieces", sf.array(_piece(index, sf.col("volume")))
    )
    pieces = plain.unionByName(_split(placed.where("crossed"))).select(
        *_PLACE, *keys, "count", "bytes", "tiers", sf.posexplode("pieces").alias("place", "piece")
    )
    first = sf.col("place") == 0
    price = sf.element_at("tiers", sf.col("piece.tier") + 1)["price"].cast(UNIT_PRICE)
    priced = pieces.select(
        "account",
        *keys,
        "kind",
        "hour",
        "month",
        "billed",
        # So that the sum of a resource's rows is its usage, for any number of tiers.
        *[sf.when(first, sf.col(name)).otherwise(0).alias(name) for name in ("count", "bytes")],
        _dated(card, lambda prices: sf.lit(prices.currency)).alias("currency"),
        (sf.col("piece.tier") + 1).alias("tier"),
        _dated(card, lambda prices: sf.lit(iso_day(prices.from_ms))).alias("price_date"),
        sf.col("piece.quantity").alias("quantity"),
        price.alias("unit_price"),
        _dated(card, _part_paid).cast(PART_PAID).alias("paid"),
    )
    listed = (sf.col("quantity").cast(_EXACT_COUNT) * sf.col("unit_price")).cast(_LISTED)
    return priced.withColumn("charge", (listed * sf.col("paid")).cast(CHARGE))


def _running(rows: DataFrame) -> DataFrame:
    """Returns the month's volume before and after each hour: up to 744 rows by account and kind."""
    hours = rows.groupBy(*_PLACE).agg(sf.sum("volume").alias("hour_volume"))
    in_order = (
        Window.partitionBy("account", "kind", "month")
        .orderBy(~sf.col("billed"), "hour")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    until = hours.withColumn("until", sf.sum("hour_volume").over(in_order))
    since = sf.col("until") - sf.col("hour_volume")
    return until.withColumn("since", since).drop("hour_volume")


def _split(rows: DataFrame) -> DataFrame:
    """Returns the rows of hours in which a tier begins, split into one piece for each tier."""
    in_order = (
        Window.partitionBy(*_PLACE)
        .orderBy("resource_id", "resource")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    until = sf.col("since") + sf.sum("volume").over(in_order)
    placed = rows.withColumn("until", until)
    placed = placed.withColumn("since", sf.col("until") - sf.col("volume"))

    def piece(tier: Column, index: Column) -> Column:
        width = _within("until", tier) - _within("since", tier)
        return _piece(index, width)

    pieces = sf.filter(sf.transform("tiers", piece), lambda each: each["quantity"] != 0)
    none = sf.array(_piece(sf.lit(0), sf.lit(0)))
    return placed.withColumn("pieces", sf.when(sf.size(pieces) > 0, pieces).otherwise(none))


def _piece(tier: Column, quantity: Column) -> Column:
    return sf.struct(tier.cast("int").alias("tier"), quantity.cast("bigint").alias("quantity"))


def _within(name: str, tier: Column) -> Column:
    """Returns a volume's part in the tier; the first tier has no lower end, for negative use."""
    # Both ignore a null.
    return sf.least(sf.greatest(sf.col(name), tier["above"]), tier["below"])


def _dated(card: RateCard, value: Callable[[Prices], Column]) -> Column:
    """Returns the value of the prices for the hour's day."""
    said = sf.concat(sf.lit(f"{card.path}: it has no prices for the day "), sf.col("day"))
    chosen = refuse_saying(said)
    for prices in card.prices:
        begin = sf.lit(datetime.fromtimestamp(prices.from_ms / 1000, UTC).isoformat())
        reached = sf.col("hour") >= begin.cast("timestamp")
        chosen = sf.when(reached, value(prices)).otherwise(chosen)
    return chosen


def _tiers(prices: Prices) -> Column:
    """Returns the tiers of the row's kind."""
    by_kind: list[Column] = []
    for kind, tiers in sorted(prices.tiers.items()):
        ends = [*(tier.above for tier in tiers[1:]), None]
        listed = [
            sf.struct(
                sf.lit(tier.above if place else None).cast("bigint").alias("above"),
                sf.lit(end).cast("bigint").alias("below"),
                sf.lit(f"{tier.price:f}").cast(UNIT_PRICE).alias("price"),
            )
            for place, (tier, end) in enumerate(zip(tiers, ends, strict=True))
        ]
        by_kind += [sf.lit(kind), sf.array(*listed)]
    return sf.create_map(*by_kind)[sf.col("kind")].cast(_TIERS)


def _part_paid(prices: Prices) -> Column:
    paid = sf.lit("1").cast(PART_PAID)
    for account, discount in prices.discounts.items():
        exact = sf.lit(f"{1 - discount:f}").cast(PART_PAID)
        paid = sf.when(sf.col("account") == account, exact).otherwise(paid)
    return paid
