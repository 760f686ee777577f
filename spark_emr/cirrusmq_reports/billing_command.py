"""`billing_job.py`: from exports of the Usage table to usage by hour, charges and invoices."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports import outputs
from cirrusmq_reports.billing_page import render_billing
from cirrusmq_reports.billing_summary import billing_summaries
from cirrusmq_reports.command import (
    Session,
    add_common_arguments,
    exit_code,
    materialize,
    named_failures,
    open_exports,
    open_output,
    place_argument,
)
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.files import Files, open_files
from cirrusmq_reports.manifests import Export, check_no_gap
from cirrusmq_reports.rate_card import RateCard, read_rate_card
from cirrusmq_reports.records import Reader
from cirrusmq_reports.schemas import USAGE
from cirrusmq_reports.times import DAY_MS, iso_day, iso_month, iso_time, parse_time
from cirrusmq_reports.transforms.charged_usage import USAGE_SCHEMA, charged_usage
from cirrusmq_reports.transforms.daily_charges import daily_charges
from cirrusmq_reports.transforms.invoice_lines import INVOICE_SCHEMA, invoice_lines
from cirrusmq_reports.transforms.usage_by_hour import usage_by_hour
from cirrusmq_reports.transforms.usage_entries import usage_entries
from cirrusmq_reports.transforms.usage_records import usage_records

REPORT = "billing"
USAGE_LIVES_DAYS = 40
REPORT_DAYS_MOST = 400


def run(arguments: Sequence[str], session: Session) -> int:
    """Run the job; its exit code."""
    options = _parser().parse_args(arguments)
    return exit_code(lambda: _report(options, session))


def whole_since_ms(exports: Sequence[Export]) -> int:
    """From when on the exports show every usage record, or could not have shown more.

    Before that, TTL has begun to remove records, or no window of changes reaches back::

        day   | 1 | 2 | 3 | …                    | 41 |
                 ^ 40 days before the export          ^ export
                   so day 1 is no longer whole, day 2 is
    """
    return min(map(_since_ms, exports))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="billing_job.py", description="Bill what the usage records of exports show."
    )
    add_common_arguments(parser, "Usage")
    parser.add_argument(
        "--rate-card", type=place_argument, required=True, metavar="FILE", help="prices, as YAML"
    )
    return parser


def _report(options: Namespace, session: Session) -> None:
    card = _read_card(options.rate_card, session)
    exports = open_exports(options.exports, session)
    check_no_gap([(_since_ms(export), export) for export in exports])
    to_ms = max(export.at_ms for export in exports)
    output, files = open_output(
        options.output, session, REPORT, outputs.USAGE, outputs.INVOICE_LINES
    )
    spark = session()
    reader = Reader(spark, USAGE)
    entries = usage_entries(usage_records(reader, exports))
    current = materialize(charged_usage(usage_by_hour(entries), card, to_ms), [reader])
    try:
        with named_failures([reader]):
            _write(spark, files, output, current, card, exports)
    finally:
        current.unpersist()


def _write(
    spark: SparkSession,
    files: Files,
    output: str,
    current: DataFrame,
    card: RateCard,
    exports: Sequence[Export],
) -> None:
    """Everything is worked out first, then written: a failure before that replaces nothing."""
    usage_folder = f"{output}/{outputs.USAGE}"
    lines_folder = f"{output}/{outputs.INVOICE_LINES}"
    shown = {str(row["day"]) for row in current.select("day").distinct().collect()}
    months = {day[:7] for day in shown}
    to_ms = max(export.at_ms for export in exports)
    known = outputs.read_partitions(spark, files, usage_folder, USAGE_SCHEMA)
    billed = shown & outputs.partition_values(files, usage_folder)
    left = _begun_before(billed, whole_since_ms(exports)) | _known_better(billed, known, to_ms)
    for day in sorted(left):
        print(f"{day} stays as it was: the exports show only a part of it", file=sys.stderr)
    replaced = current.where(~sf.col("day").isin(*left)) if left else current
    # An invoice is of its whole month: the days not replaced are read from earlier reports. None
    # of them is overwritten below, so that they can still be read then.
    same_months = sf.substring("day", 1, 7).isin(*months)
    others = known.where(same_months & ~sf.col("day").isin(*(shown - left)))
    usage = replaced.unionByName(others)
    lines = invoice_lines(usage, card)
    earlier = outputs.read_partitions(spark, files, lines_folder, INVOICE_SCHEMA)
    to_ms = max([to_ms, *_shown_to_ms(others).values()])
    from_ms = _first_ms(to_ms, months | outputs.partition_values(files, lines_folder))
    recent = sf.col("month") >= iso_month(from_ms)
    reported = lines.unionByName(earlier.where(recent & ~sf.col("month").isin(*months)))
    rows = [row.asDict() for row in reported.collect()]
    daily = [row.asDict() for row in daily_charges(usage).collect()]
    summaries = billing_summaries(rows, from_ms, to_ms, time.time_ns() // 1_000_000, card.decimals)
    page = render_billing(summaries, daily, f"{iso_time(from_ms)} to {iso_time(to_ms)}")
    reports = outputs.reports(files, output, REPORT, summaries, page)
    outputs.write_partitions(lines, lines_folder, "month")
    outputs.write_partitions(replaced, usage_folder, "day")
    files.replace(reports)


def _begun_before(days: Collection[str], since_ms: int) -> set[str]:
    """Those of the days of which the exports do not show the beginning any more."""
    return {day for day in days if parse_time(day) < since_ms}


def _known_better(days: Collection[str], known: DataFrame, to_ms: int) -> set[str]:
    """Those of the days that the exports end within, billed already from exports that reach on."""
    cut = {day for day in days if to_ms < parse_time(day) + DAY_MS}
    shown_to = _shown_to_ms(known.where(sf.col("day").isin(*cut))) if cut else {}
    return {day for day, shown_to_ms in shown_to.items() if to_ms < shown_to_ms}


def _shown_to_ms(usage: DataFrame) -> dict[str, int]:
    """Day → the end of the exports that it was billed from."""
    days = usage.groupBy("day").agg(sf.max("shown_to_ms").alias("shown_to_ms")).collect()
    return {row["day"]: row["shown_to_ms"] for row in days}


def _since_ms(export: Export) -> int:
    """From when on an export shows the records that were written."""
    if export.since_ms is not None:
        return export.since_ms
    return export.at_ms - USAGE_LIVES_DAYS * DAY_MS


def _first_ms(to_ms: int, months: Collection[str]) -> int:
    """The report's begin: that of the oldest month that began in the last 400 days."""
    oldest_ms = to_ms - REPORT_DAYS_MOST * DAY_MS
    starts = [start for start in map(_month_ms, months) if start >= oldest_ms]
    return min(starts, default=parse_time(iso_day(to_ms)))


def _month_ms(month: str) -> int:
    return parse_time(f"{month}-01")


def _read_card(path: str, session: Session) -> RateCard:
    try:
        text = open_files(path, session).read(path).decode()
    except FileNotFoundError:
        raise BadInput(f"{path}: missing") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not a rate card: it is not text in UTF-8") from None
    return read_rate_card(path, text)
