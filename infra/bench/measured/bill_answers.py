"""The work of the billing job's driver for the answers of `GET /reports/billing`.

    python -m infra.bench bill_answers                                            a table, small
    python -m infra.bench.measured.bill_answers --accounts 10000 --lines 50       minutes

Accounts have a year of closed months and an open one, each with `--lines` lines. The first night
writes the lines of all twelve documents, as every night did before they were written once; the
second one is like every later night. Seconds are CPU seconds of the driver's Python, which works
alone, one account after the other; Spark sums and sorts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from ..drawing.tables import show

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY / "spark_emr"))

AT_MS = 1_795_161_600_000
"""In November 2026."""
CLOSED = [f"2025-{month:02}" for month in (11, 12)] + [f"2026-{month:02}" for month in range(1, 11)]
OPEN = "2026-11"
KINDS_OF_A_RESOURCE = 5


def run() -> None:
    """Measures a few accounts, and prints a table."""
    _measure(500, 50)


def main() -> None:
    """Measures the accounts of the command line, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accounts", type=int, default=500)
    parser.add_argument("--lines", type=int, default=50, help="of an account in a month")
    options = parser.parse_args()
    _measure(options.accounts, options.lines)


def _measure(accounts: int, lines: int) -> None:
    from local_run import prepare_java

    prepare_java()
    with tempfile.TemporaryDirectory() as output:
        rows = [
            (name, accounts * lines * months, *figures)
            for (name, months), figures in zip(
                (("closed months, written once, and the open one", 13), ("a night", 1)),
                _nights(output, accounts, lines),
                strict=True,
            )
        ]
    heads = ("answers", "lines", "CPU s of Python", "files", "MB written")
    show(f"Bills of {accounts:,} accounts of {lines} lines a month", heads, rows)


def _nights(output: str, accounts: int, lines: int) -> Iterator[tuple[float, int, float]]:
    """Yields seconds, files and megabytes of two nights."""
    from cirrusmq_reports.billing_plan import Due
    from cirrusmq_reports.billing_show import Showing
    from cirrusmq_reports.billing_state import State
    from cirrusmq_reports.billing_tables import BILL_TABLES
    from cirrusmq_reports.closing import DOCUMENT_TABLE, LINE_TABLE
    from cirrusmq_reports.command import open_outputs
    from cirrusmq_reports.ledger import Taken
    from cirrusmq_reports.rate_card import read_rate_card
    from cirrusmq_reports.session import make_session, without_rows
    from cirrusmq_reports.transforms.charged_usage import charged_usage
    from cirrusmq_reports.transforms.usage_by_hour import USAGE_SCHEMA
    from local_run import LOCAL_CONFIGURATION

    spark = make_session("bench", LOCAL_CONFIGURATION)
    path = REPOSITORY / "infra/rate_card.yaml"
    card = read_rate_card(str(path), path.read_text())
    usage = without_rows(spark, f"{USAGE_SCHEMA}, billed BOOLEAN")
    taken = Taken(parts=[], quarantine=[], set_aside=Counter(), removed={}, changed=False)
    due = Due(closing=[], waiting=[])
    parts: list[Any] = []
    for _ in range(2):
        with open_outputs(output, lambda: spark, "billing", *BILL_TABLES) as outputs:
            if not parts:
                listed = _lines(spark, accounts, lines, CLOSED)
                parts += outputs.write(_documents(listed), DOCUMENT_TABLE, "closed")
                parts += outputs.write(
                    listed.withColumn("closed", listed.month), LINE_TABLE, "closed"
                )
            open_lines = _lines(spark, accounts, lines, [OPEN]).drop("number", "line")
            open_lines = open_lines.selectExpr("*", "CAST(NULL AS STRING) AS used_day").persist()
            open_lines.count()
            before = _files(output)
            start = time.process_time()
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                Showing(spark, outputs, 3, card).show(
                    State(to_ms=AT_MS), charged_usage(usage, card), open_lines, parts, taken, due
                )
                outputs.flush()
            seconds = time.process_time() - start
            written = [size for name, size in _files(output).items() if name not in before]
            yield round(seconds, 1), len(written), round(sum(written) / 1e6, 1)
    spark.stop()


def _files(output: str) -> dict[str, int]:
    found = Path(output, "runs").rglob("*.json")
    return {str(path): path.stat().st_size for path in found}


def _lines(spark: Any, accounts: int, lines: int, months: list[str]) -> Any:
    """Returns rows of DOCUMENT_LINE_SCHEMA."""
    from pyspark.sql import functions as sf

    from cirrusmq_reports.columns import columns_of
    from cirrusmq_reports.rate_card import KINDS
    from cirrusmq_reports.transforms.invoice_lines import DOCUMENT_LINE_SCHEMA

    rows = spark.range(accounts * lines * len(months)).withColumns(
        {
            "place": sf.expr(f"id % {lines}"),
            "account": sf.format_string("account-%06d", sf.expr(f"id div {lines} % {accounts}")),
            "at": sf.expr(f"CAST(id div {lines * accounts} AS INT)"),
        }
    )
    kinds = sf.array(*map(sf.lit, KINDS[:KINDS_OF_A_RESOURCE]))
    month = sf.element_at(sf.array(*map(sf.lit, months)), sf.col("at") + 1)
    values = {
        "month": month,
        "used_month": month,
        "currency": sf.lit("USD"),
        "resource": sf.format_string("queue:of-some-length-%d", sf.expr("place div 5")),
        "kind": sf.element_at(kinds, (sf.col("place") % KINDS_OF_A_RESOURCE + 1).cast("int")),
        "tier": sf.lit(1),
        "charge": sf.lit("1.2345"),
        "count": sf.lit(3_086_250),
        "bytes": sf.lit(123_456_789),
        "number": sf.format_string("INV-%s-%06d", sf.col("account"), sf.col("at") + 1),
        "account": sf.col("account"),
    }
    return rows.select(
        [
            values.get(name, sf.lit(None)).cast(type_).alias(name)
            for name, type_ in columns_of(DOCUMENT_LINE_SCHEMA).items()
        ]
    )


def _documents(listed: Any) -> Any:
    """Returns rows of DOCUMENT_SCHEMA for all lines."""
    from pyspark.sql import functions as sf

    from cirrusmq_reports.columns import columns_of
    from cirrusmq_reports.documents import DOCUMENT_SCHEMA

    sums = listed.groupBy("number", "account", "month", "currency").agg(
        sf.sum("charge").alias("total")
    )
    known = {name: sf.col(name) for name in sums.columns}
    known |= {"closed": sf.col("month"), "type": sf.lit("invoice")}
    return sums.select(
        [
            known.get(name, sf.lit(None)).cast(type_).alias(name)
            for name, type_ in columns_of(DOCUMENT_SCHEMA).items()
        ]
    )


if __name__ == "__main__":
    main()
