"""Charges by tiers: exact, and one tier and price date a row."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.job_runs import RATE_CARD
from tests.spark.transforms.frames import Values, at, frame, rows_of

from cirrusmq_reports.rate_card import RateCard, read_rate_card
from cirrusmq_reports.transforms.charged_usage import charged_usage
from cirrusmq_reports.transforms.invoice_lines import invoice_lines
from cirrusmq_reports.transforms.usage_by_hour import USAGE_SCHEMA

TEXT = RATE_CARD.read_text()
SCHEMA = f"{USAGE_SCHEMA}, billed BOOLEAN"
TIERS = """
    free_each_month:
      sent: 10
    tiers:
      sent:
        - above: 25
          price: 20000
    discount_percent:
      globex: 12.5
"""
DEAR = TEXT.replace("sent: 0.40", "sent: 40000.00")
"""0.04 a message."""


def card(text: str = DEAR) -> RateCard:
    return read_rate_card("card", text)


def use(hour: str, count: int, resource: str = "queue:q", **more: Any) -> Values:
    row = {"account": "acme", "resource": resource, "kind": "sent", "hour": at(hour)}
    row |= {"day": hour[:10], "month": hour[:7], "count": count, "bytes": 7 * count}
    return {**row, "resource_id": None, "billed": False, **more}


def charged(spark: SparkSession, rows: list[Values], text: str = DEAR + TIERS) -> DataFrame:
    return charged_usage(frame(spark, SCHEMA, rows), card(text))


def pieces(rows: DataFrame) -> set[tuple[Any, ...]]:
    shown = [(*row[:-1], row[-1].normalize()) for row in rows_of(
        rows, "resource", "hour", "tier", "quantity", "charge"
    )]  # fmt: skip
    return set(shown)


def test_a_tier_begins_hour_by_hour_and_within_an_hour_by_resource(spark: SparkSession) -> None:
    rows = [
        use("2026-11-05 08:00", 6),
        use("2026-11-05 09:00", 3, "queue:a"),
        use("2026-11-05 09:00", 4, "queue:b"),
        use("2026-11-06 09:00", 20, "queue:b"),
        use("2026-11-07 09:00", 5, "queue:a"),
    ]
    five, six, seven = "2026-11-05 09:00", "2026-11-06 09:00", "2026-11-07 09:00"
    assert pieces(charged(spark, rows)) == {
        ("queue:q", "2026-11-05 08:00", 1, 6, Decimal(0)),
        ("queue:a", five, 1, 3, Decimal(0)),
        ("queue:b", five, 1, 1, Decimal(0)),
        ("queue:b", five, 2, 3, Decimal("0.12")),
        ("queue:b", six, 2, 12, Decimal("0.48")),
        ("queue:b", six, 3, 8, Decimal("0.16")),
        ("queue:a", seven, 3, 5, Decimal("0.1")),
    }


def test_billed_usage_comes_first(spark: SparkSession) -> None:
    rows = [use("2026-11-01 08:00", 4), use("2026-11-30 08:00", 10, "queue:z", billed=True)]
    found = charged(spark, rows).where("NOT billed")
    assert pieces(found) == {("queue:q", "2026-11-01 08:00", 2, 4, Decimal("0.16"))}


def test_prices_are_those_of_the_hours_day(spark: SparkSession) -> None:
    later = DEAR[DEAR.index("  - from") :].replace("2020-01-01", "2026-12-01")
    text = DEAR + later.replace("sent: 40000.00", "sent: 10000.00").replace("USD", "CNY")
    rows = [use("2026-11-30 23:00", 5), use("2026-12-01 00:00", 5)]
    found = rows_of(charged(spark, rows, text), "month", "currency", "price_date", "charge")
    assert {(*row[:3], row[3].normalize()) for row in found} == {
        ("2026-11", "USD", "2020-01-01", Decimal("0.2")),
        ("2026-12", "CNY", "2026-12-01", Decimal("0.05")),
    }


def test_a_day_without_prices_is_refused(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="no prices for the day 2019-12-31"):
        charged(spark, [use("2019-12-31 23:00", 1)]).collect()


def test_a_discount_is_of_the_account(spark: SparkSession) -> None:
    rows = [use("2026-11-05 08:00", 20, account="globex")]
    found = charged(spark, rows)
    assert sum(row["charge"] for row in found.collect()) == Decimal("0.35")
    assert {row["paid"] for row in found.collect()} == {Decimal("0.8750")}


@pytest.mark.parametrize("seed", range(3))
def test_any_use_is_charged_by_its_volume_and_each_line_by_its_quantity(
    spark: SparkSession, seed: int
) -> None:
    """Signed: a repeated batch takes back what it had too much."""
    drawn = random.Random(seed)
    rows = [
        use(
            f"2026-11-{drawn.randint(1, 3):02} {drawn.randint(0, 3):02}:00",
            drawn.randint(-4, 9),
            drawn.choice(("queue:a", "queue:b", "queue:c")),
            billed=drawn.random() < 0.3,
        )
        for _ in range(25)
    ]
    found = charged(spark, rows).persist()
    volume = sum(row["count"] for row in rows)
    expected = max(0, min(volume, 25) - 10) * Decimal("0.04") + max(0, volume - 25) * Decimal(
        "0.02"
    )
    listed = invoice_lines(found).collect()

    assert sum(row["charge"] for row in listed) == expected
    for row in listed:
        assert row["charge"] == row["quantity"] * row["unit_price"] * row["paid"]
    counts: Counter[str] = Counter()
    for used in rows:
        counts[used["resource"]] += used["count"]
    for row in listed:
        counts[row["resource"]] -= row["count"]
    assert not any(counts.values())
