from __future__ import annotations

from decimal import Decimal

from pyspark.sql import SparkSession
from tests.spark.transforms.frames import Values, frame, rows_of

from cirrusmq_reports.transforms.invoice_lines import INVOICE_SCHEMA, invoice_lines

SCHEMA = (
    "account STRING, resource STRING, kind STRING, day STRING, month STRING, count BIGINT, "
    "bytes BIGINT, currency STRING, charge DECIMAL(38,19)"
)


def use(day: str, charge: str, **more: object) -> Values:
    return {
        "account": "acme",
        "resource": "queue:q",
        "kind": "sent",
        "day": day,
        "month": day[:7],
        "count": 1,
        "bytes": 2,
        "currency": "USD",
        "charge": Decimal(charge),
        **more,
    }


def test_an_amount_is_rounded_once_half_up(spark: SparkSession) -> None:
    usage = frame(
        spark,
        SCHEMA,
        [
            use("2026-11-01", "0.0024"),
            use("2026-11-02", "0.0026"),
            use("2026-11-02", "0.0049", kind="received"),
        ],
    )
    lines = invoice_lines(usage, 2)
    assert ", ".join(f"{f.name} {f.dataType.simpleString().upper()}" for f in lines.schema) == (
        INVOICE_SCHEMA
    )
    assert rows_of(lines, "kind", "count", "bytes", "amount") == {
        ("sent", 2, 4, Decimal("0.010000")),
        ("received", 1, 2, Decimal("0.000000")),
    }


def test_a_correction_and_a_currency_have_lines_of_their_own(spark: SparkSession) -> None:
    usage = frame(
        spark,
        SCHEMA,
        [
            use("2026-12-01", "1"),
            use("2026-11-30", "2", month="2026-12"),
            use("2026-10-30", "3", month="2026-12", currency="CNY"),
        ],
    )
    assert rows_of(invoice_lines(usage, 2), "month", "correction", "currency", "amount") == {
        ("2026-12", None, "USD", Decimal("1.000000")),
        ("2026-12", "2026-11", "USD", Decimal("2.000000")),
        ("2026-12", "2026-10", "CNY", Decimal("3.000000")),
    }
