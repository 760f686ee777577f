from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.transforms.frames import Values, at, frame, rows_of

from cirrusmq_reports.rate_card import GIGABYTE, KINDS, MILLION, Prices, RateCard, Tier
from cirrusmq_reports.times import parse_time
from cirrusmq_reports.transforms.billed_volumes import billed_volumes
from cirrusmq_reports.transforms.charged_usage import charged_usage

SCHEMA = (
    "account STRING, resource STRING, kind STRING, hour TIMESTAMP, day STRING, month STRING, "
    "count BIGINT, bytes BIGINT, shown_to_ms BIGINT"
)


def prices(day: str, *tiers: tuple[int, str], currency: str = "USD", **discounts: str) -> Prices:
    """Prices of a million messages; of a gigabyte that is kept."""
    million = [Tier(above, Decimal(price) / MILLION) for above, price in tiers]
    giga = [Tier(above * 1_000, Decimal(price) / GIGABYTE) for above, price in tiers]
    return Prices(
        from_ms=parse_time(day),
        currency=currency,
        tiers={kind: giga if kind == "kept" else million for kind in KINDS},
        discounts={account: Decimal(part) for account, part in discounts.items()},
    )


def card(*listed: Prices) -> RateCard:
    return RateCard(path="card", decimals=2, prices=listed)


def use(hour: str, count: int, **more: object) -> Values:
    day = hour[:10]
    return {
        "account": "acme",
        "resource": "queue:q",
        "kind": "sent",
        "hour": at(hour),
        "day": day,
        "month": day[:7],
        "count": count,
        "bytes": 0,
        **more,
    }


def charged(
    spark: SparkSession, rates: RateCard, *rows: Values, closed: tuple[Values, ...] = ()
) -> DataFrame:
    billed = billed_volumes(frame(spark, SCHEMA, closed))
    return charged_usage(frame(spark, SCHEMA, rows), billed, rates)


def charges(rows: DataFrame) -> dict[tuple[str, str], Decimal]:
    """(resource, day) of the account `acme` and the kind `sent` → charge."""
    own = rows.where("account = 'acme' AND kind = 'sent'")
    return {
        (name, day): charge.normalize()
        for name, day, charge in rows_of(own, "resource", "day", "charge")
    }


def test_each_day_has_the_prices_of_its_time(spark: SparkSession) -> None:
    dated = card(
        prices("2026-01-01", (0, "0.40")), prices("2026-12-01", (0, "4.00"), currency="CNY")
    )
    rows = charged(spark, dated, use("2026-11-30 23:00", 10**6), use("2026-12-01 00:00", 10**6))
    assert rows_of(rows, "day", "currency", "charge") == {
        ("2026-11-30", "USD", Decimal("0.4000000000000000000")),
        ("2026-12-01", "CNY", Decimal("4.0000000000000000000")),
    }


def test_tiers_begin_where_a_month_of_an_account_reaches_them(spark: SparkSession) -> None:
    tiered = card(prices("2026-01-01", (0, "0"), (1_000, "1"), (3_000, "0.5")))
    rows = charged(
        spark,
        tiered,
        use("2026-11-01 00:00", 600),
        use("2026-11-01 01:00", 600, resource="queue:a"),
        use("2026-11-01 01:00", 2_000, resource="queue:b"),
        use("2026-11-02 00:00", 1_000),
        use("2026-11-03 00:00", 900, account="other"),
        use("2026-12-01 00:00", 900),
        use("2026-11-04 00:00", 900, kind="received"),
    )
    assert charges(rows) == {
        ("queue:q", "2026-11-01"): Decimal("0"),
        ("queue:a", "2026-11-01"): Decimal("0.0002"),
        ("queue:b", "2026-11-01"): (Decimal("1.8") + Decimal("0.1")) / 1000,
        ("queue:q", "2026-11-02"): Decimal("0.0005"),
        ("queue:q", "2026-12-01"): Decimal("0"),
    }
    others = rows.where("account != 'acme' OR kind != 'sent'")
    assert {row["charge"] for row in others.collect()} == {0}


def test_the_charge_of_a_month_does_not_depend_on_how_it_is_cut(spark: SparkSession) -> None:
    tiered = card(prices("2026-01-01", (0, "0.7"), (1_000, "0.3"), (2_500, "0.1")))
    steps = [700, -200, 900, 1_300, -50, 800]
    rows = charged(
        spark, tiered, *[use(f"2026-11-0{day} 00:00", step) for day, step in enumerate(steps, 1)]
    )
    total = sum(row["charge"] for row in rows.collect())
    volume = sum(steps)
    expected = Decimal(1_000) * Decimal("0.7") + Decimal(1_500) * Decimal("0.3")
    expected += (volume - 2_500) * Decimal("0.1")
    assert total == expected / MILLION


def test_a_correction_continues_behind_what_its_month_had(spark: SparkSession) -> None:
    tiered = card(prices("2026-01-01", (0, "1"), (1_000, "0.5")))
    rows = charged(
        spark,
        tiered,
        use("2026-10-30 00:00", 400, month="2026-11"),
        use("2026-11-01 00:00", 400),
        closed=(use("2026-10-05 00:00", 700), use("2026-09-05 00:00", 5_000)),
    )
    assert charges(rows) == {
        ("queue:q", "2026-10-30"): Decimal("0.0003") + Decimal("0.00005"),
        ("queue:q", "2026-11-01"): Decimal("0.0004"),
    }


def test_bytes_are_charged_of_what_is_kept_and_a_discount_is_an_accounts(
    spark: SparkSession,
) -> None:
    rates = card(prices("2026-01-01", (0, "8"), acme="0.125"))
    kept = {"kind": "kept", "bytes": 10**9}
    rows = charged(
        spark,
        rates,
        use("2026-11-01 00:00", 5, **kept),
        use("2026-11-01 00:00", 5, account="other", **kept),
    )
    assert rows_of(rows, "account", "charge") == {
        ("acme", Decimal("7.0000000000000000000")),
        ("other", Decimal("8.0000000000000000000")),
    }


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (use("2025-12-31 23:00", 1), "card: it has no prices for the day 2025-12-31"),
        (use("2026-12-31 23:00", 1, kind="sung"), "card: it has no price for the kind sung"),
    ],
)
def test_use_without_a_price_is_an_error(spark: SparkSession, row: Values, words: str) -> None:
    rows = charged(spark, card(prices("2026-01-01", (0, "1"))), row)
    with pytest.raises(Exception, match=words):
        rows.collect()
