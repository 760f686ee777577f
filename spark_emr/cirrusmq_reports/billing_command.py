"""`billing_job.py`: from exports of the Usage table to usage by hour, charges and invoices."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports.billing_page import render_billing
from cirrusmq_reports.billing_plan import REPORT_DAYS_MOST, Plan, State, first_ms, plan_bill
from cirrusmq_reports.billing_summary import (
    Figures,
    billing_summaries,
    invoices_as_csv,
    total_forecasts,
)
from cirrusmq_reports.command import (
    Session,
    add_common_arguments,
    days_argument,
    exit_code,
    materialize,
    named_failures,
    open_exports,
    open_outputs,
    place_argument,
)
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.files import open_files
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.publication import Outputs, Part
from cirrusmq_reports.rate_card import RateCard, read_rate_card
from cirrusmq_reports.records import Reader
from cirrusmq_reports.schemas import USAGE
from cirrusmq_reports.times import DAY_MS, iso_day, iso_month
from cirrusmq_reports.transforms.billed_volumes import billed_volumes
from cirrusmq_reports.transforms.charged_usage import USAGE_SCHEMA, charged_usage
from cirrusmq_reports.transforms.daily_charges import daily_charges
from cirrusmq_reports.transforms.invoice_lines import INVOICE_SCHEMA, invoice_lines
from cirrusmq_reports.transforms.month_so_far import month_so_far
from cirrusmq_reports.transforms.open_usage import OPEN_USAGE, open_usage
from cirrusmq_reports.transforms.unusual_hours import unusual_hours
from cirrusmq_reports.transforms.usage_by_hour import usage_by_hour
from cirrusmq_reports.transforms.usage_entries import usage_entries
from cirrusmq_reports.transforms.usage_records import usage_records

REPORT = "billing"
USAGE_TABLE, LINES_TABLE = "usage", "invoice_lines"
CLOSE_DAYS = 3


def run(arguments: Sequence[str], session: Session) -> int:
    """Run the job; its exit code."""
    options = _parser().parse_args(arguments)
    return exit_code(lambda: _report(options, session))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="billing_job.py", description="Bill what the usage records of exports show."
    )
    add_common_arguments(parser, "Usage")
    parser.add_argument(
        "--rate-card", type=place_argument, required=True, metavar="FILE", help="prices, as YAML"
    )
    parser.add_argument(
        "--close-days",
        type=days_argument,
        default=CLOSE_DAYS,
        metavar="DAYS",
        help="an invoice closes so many days after its month; what comes later is a correction",
    )
    parser.add_argument(
        "--accept-gaps",
        action="store_true",
        help="bill also where no export shows the use of some days, and say so in the report",
    )
    return parser


def _report(options: Namespace, session: Session) -> None:
    card = _read_card(options.rate_card, session)
    exports = open_exports(options.exports, session)
    with open_outputs(options.output, session, REPORT, USAGE_TABLE, LINES_TABLE) as outputs:
        plan = plan_bill(
            exports,
            State.of(outputs.published.state),
            options.close_days,
            accept_gaps=options.accept_gaps,
        )
        for gap in plan.after.gaps:
            print(f"the use of {gap.days} is missing: no export shows it", file=sys.stderr)
        bill = _Bill(session(), outputs, plan, card, options.close_days)
        bill.make(exports)


@dataclass(frozen=True)
class _Bill:
    """One run: everything is worked out first, then written, then published."""

    spark: SparkSession
    outputs: Outputs
    plan: Plan
    card: RateCard
    close_days: int

    def make(self, exports: Sequence[Export]) -> None:
        reader = Reader(self.spark, USAGE)
        entries = usage_entries(usage_records(reader, exports), self.plan.to_ms)
        shown_to = sf.lit(self.plan.to_ms).cast("bigint")
        hourly = usage_by_hour(entries, self.close_days).withColumn("shown_to_ms", shown_to)
        shown = materialize(hourly, [reader])
        try:
            with named_failures([reader]):
                self._write(self._open_usage(shown).persist())
        finally:
            self.spark.catalog.clearCache()

    def _open_usage(self, shown: DataFrame) -> DataFrame:
        """The usage of all open months, charged."""
        earlier = self._earlier(self.plan.earliest_month)
        days = {str(row["day"]) for row in shown.select("day").distinct().collect()}
        ends = earlier.where(sf.col("day").isin(*days)) if days else earlier.limit(0)
        known = ends.groupBy("day").agg(sf.max("shown_to_ms").alias("shown_to_ms")).collect()
        known_to_ms = {str(row["day"]): int(row["shown_to_ms"]) for row in known}
        last = iso_day(self.plan.to_ms)
        reach = self.plan.reach(known_to_ms, known_to_ms.get(last, 0))
        for day in sorted({*reach.kept_days} & days):
            print(f"{day} stays as it was: the exports show only a part of it", file=sys.stderr)
        columns = [*OPEN_USAGE, "shown_to_ms"]
        usage = open_usage(shown.select(columns), earlier.select(columns), reach)
        return charged_usage(usage, billed_volumes(self._closed(earlier)), self.card)

    def _write(self, usage: DataFrame) -> None:
        outputs, state = self.outputs, self.plan.after
        lines = invoice_lines(usage, self.card.decimals).persist()
        closed_lines = self._closed_parts(LINES_TABLE)
        earliest = iso_month(state.to_ms - REPORT_DAYS_MOST * DAY_MS)
        recent = [part for part in closed_lines if part.part >= earliest]
        reported = lines.unionByName(outputs.read(self.spark, recent, INVOICE_SCHEMA))
        closed = self._closed(self._earlier(self.plan.earliest_month))
        figures = self._figures(reported, usage.unionByName(closed))
        from_ms = first_ms(state.to_ms, {line["month"] for line in figures.lines})
        summaries = billing_summaries(
            figures,
            state,
            from_ms,
            outputs.generated_ms,
            decimals=self.card.decimals,
            close_days=self.close_days,
        )
        page = render_billing(summaries, figures.daily, from_ms, state)
        written = [
            *outputs.write(usage, USAGE_TABLE, "month"),
            *outputs.write(lines, LINES_TABLE, "month"),
        ]
        outputs.write_documents(summaries, page, dict(invoices_as_csv(summaries)))
        kept = [*self._closed_parts(USAGE_TABLE), *closed_lines]
        outputs.publish(state.as_dict(), [*kept, *written])
        # Lines of the job's log that filters make metrics of.
        print(json.dumps({"unusual_hours": len(figures.unusual)}))
        for currency, total in sorted(total_forecasts(summaries).items()):
            print(json.dumps({"currency": currency, "forecast": float(total)}))

    def _figures(self, lines: DataFrame, usage: DataFrame) -> Figures:
        to_ms = self.plan.after.to_ms
        unusual = unusual_hours(usage, to_ms).withColumn("hour_ms", sf.unix_millis("hour"))
        return Figures(
            lines=_rows(lines),
            so_far=_rows(month_so_far(usage, to_ms)),
            unusual=_rows(unusual.drop("hour").orderBy("account", "hour_ms", "resource", "kind")),
            daily=_rows(daily_charges(usage)),
        )

    def _earlier(self, month: str) -> DataFrame:
        """The usage of earlier reports, from a month on."""
        parts = self.outputs.published.of(USAGE_TABLE)
        chosen = [part for name, part in parts.items() if name >= month]
        return self.outputs.read(self.spark, chosen, USAGE_SCHEMA)

    def _closed_parts(self, table: str) -> list[Part]:
        parts = self.outputs.published.of(table)
        closed = self.plan.before.closed_through
        return [part for name, part in parts.items() if name <= closed]

    def _closed(self, usage: DataFrame) -> DataFrame:
        return usage.where(sf.col("month") <= self.plan.before.closed_through)


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def _read_card(path: str, session: Session) -> RateCard:
    try:
        text = open_files(path, session).read(path).decode()
    except FileNotFoundError:
        raise BadInput(f"{path}: missing") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not a rate card: it is not text in UTF-8") from None
    return read_rate_card(path, text)
