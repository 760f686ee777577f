"""Charges, closes, shows and keeps the bills of a run after its exports are taken."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports import VERSION
from cirrusmq_reports.billing_lines import OpenLines, is_adjustment
from cirrusmq_reports.billing_plan import Due
from cirrusmq_reports.billing_show import Showing
from cirrusmq_reports.billing_state import State
from cirrusmq_reports.billing_tables import (
    ADJUSTMENT_TABLE,
    ANALYST_TABLES,
    OLD_LINES,
    OPEN_TABLE,
    PARTY_TABLE,
    parts_of,
)
from cirrusmq_reports.closing import CARRIED_TABLE, DOCUMENT_TABLE, LINE_TABLE, Closed, Closing
from cirrusmq_reports.documents import CARRIED, NOTE
from cirrusmq_reports.folding import LEDGER, USAGE_TABLE, fold, folds, kept_parts
from cirrusmq_reports.labels import Labels
from cirrusmq_reports.ledger import Taken
from cirrusmq_reports.parties import PARTY_SCHEMA, party_rows
from cirrusmq_reports.publication import Outputs, Part
from cirrusmq_reports.rate_card import RateCard
from cirrusmq_reports.times import DAY_MS, iso_day, month_ms, next_month
from cirrusmq_reports.transforms.charged_usage import charged_usage
from cirrusmq_reports.transforms.invoice_lines import LINE_SCHEMA, invoice_lines, of_months
from cirrusmq_reports.transforms.usage_records import LEDGER_SCHEMA

_PART = "all"


@dataclass(frozen=True, kw_only=True)
class Found:
    """The input of a run's charging."""

    taken: Taken
    old: Closed | None
    """Closed invoices of an earlier release, which become documents, or None."""
    billed: Mapping[str, int]
    """Month → the run that closed it, without months that this run closes."""
    adjusted: Sequence[Part]
    """Parts of the new adjustments."""
    usage: Sequence[Part]
    """All parts of usage, with this run's."""
    labels: Labels
    exports: Sequence[str]
    """The names of this run's exports."""


@dataclass(frozen=True)
class Charging:
    """Charges the usage, closes months, writes all tables, and publishes them."""

    spark: SparkSession
    outputs: Outputs
    card: RateCard
    before: State
    options: Namespace

    def publish(self, after: State, found: Found, due: Due) -> None:
        """Charges, closes, writes and publishes. Raises Outdated if another run was published."""
        outputs, published = self.outputs, self.outputs.published
        own = OpenLines(self.spark, outputs, self.before)
        adjustments = [*published.all_of(ADJUSTMENT_TABLE), *found.adjusted]
        used = own.usage(found.usage, adjustments, found.billed, after.to_ms)
        charged = charged_usage(used, self.card).persist()
        lines = invoice_lines(charged).where("NOT billed").drop("billed")
        carried = published.all_of(CARRIED_TABLE)
        target = due.closing[0] if due.closing else own.target(after, found.usage)
        grouped = own.grouped(lines, adjustments, carried, found.billed, target)
        grouped = found.labels.on(grouped).persist()
        parties = party_rows(self.card, self.options.region, outputs.generated_ms)
        written = [
            *found.taken.parts,
            *found.adjusted,
            *(found.old.parts if found.old else ()),
            *found.labels.parts,
            *outputs.write_few(self.spark, parties, PARTY_SCHEMA, PARTY_TABLE, _PART),
        ]
        if due.closing:
            closed, grouped = self._close(grouped, after, found, due)
            written += closed
            carried = []
            target = own.target(after, found.usage)
        open_lines = _in_months(grouped, target).persist()
        written += outputs.write(
            open_lines.withColumn("kept_in", sf.lit(_PART)), OPEN_TABLE, "kept_in"
        )
        documents = parts_of(
            [*published.all_of(DOCUMENT_TABLE), *published.all_of(LINE_TABLE), *written],
            DOCUMENT_TABLE,
            LINE_TABLE,
        )
        Showing(self.spark, outputs, self.options.close_days, self.card).show(
            after, charged.where(~is_adjustment()), open_lines, documents, found.taken, due
        )
        kept, folded = self._kept(after, found.taken)
        for table, schema in ANALYST_TABLES.items():
            outputs.write_empty(self.spark, table, schema)
        different = outputs.publish(
            after.as_dict(),
            [*kept, *carried, *written, *folded],
            propose=self.options.propose,
            documents_run=after.documents_run,
        )
        tell_different(outputs, different)

    def _close(
        self, grouped: DataFrame, after: State, found: Found, due: Due
    ) -> tuple[list[Part], DataFrame]:
        """Returns the parts of the due documents, and the lines that are on none."""
        notes = [f"{NOTE}{month}" for month in found.billed]
        on = sf.col("group").isin(CARRIED, *due.closing, *notes)
        made_of = {
            "code": VERSION,
            "exports": self._exports(due.closing, found),
            "gaps": [stretch.days for stretch in after.accepted],
        }
        closing = Closing(self.spark, self.outputs, self.card)
        closed = closing.close(of_months(grouped.where(on)), due.closing, made_of)
        carried = parts_of(closed.parts, CARRIED_TABLE)
        left = self.outputs.read(self.spark, carried, LINE_SCHEMA).withColumns(
            {"used_day": sf.lit(None).cast("string"), "group": sf.lit(CARRIED)}
        )
        left = left.select(grouped.columns)
        return list(closed.parts), grouped.where(~on).unionByName(left)

    def _exports(self, months: Sequence[str], found: Found) -> list[str]:
        """Returns the exports that first showed these months' records, and this run's exports."""
        parts = [*self.outputs.published.all_of(LEDGER), *parts_of(found.taken.parts, LEDGER)]
        last = iso_day(month_ms(next_month(months[-1])) + DAY_MS)
        within = [part for part in parts if months[0] <= part.part <= last]
        known = self.outputs.read(self.spark, within, LEDGER_SCHEMA).select("export").distinct()
        return sorted({row["export"] for row in known.collect()} | {*found.exports})

    def _kept(self, after: State, taken: Taken) -> tuple[list[Part], list[Part]]:
        """Returns the kept parts of earlier runs, and the new parts made by folding."""
        outputs, published = self.outputs, self.outputs.published
        ledger = kept_parts(published.all_of(LEDGER), after.ledger_from)
        # Only months issued before this run are folded, so that folded rows are on documents.
        old = folds([*ledger, *usage_parts(outputs)], self.before.closed, self.before.to_ms)
        written = fold(self.spark, outputs, old)
        gone = {part for each in old for part in each.parts}
        days = [*ledger, *published.all_of(USAGE_TABLE)]
        others = (OLD_LINES, DOCUMENT_TABLE, LINE_TABLE, ADJUSTMENT_TABLE)
        return [
            *(part for part in days if part not in gone),
            *(part for table in others for part in published.all_of(table)),
            *taken.quarantine,
        ], list(written)


def usage_parts(outputs: Outputs) -> list[Part]:
    """Returns the usage parts by record; earlier releases kept parts by day."""
    return [part for part in outputs.published.all_of(USAGE_TABLE) if part.sequence]


def tell_different(outputs: Outputs, names: Sequence[str]) -> None:
    """Prints the documents that differ from the issued ones."""
    for name in names:
        print(
            f"{outputs.folder}/{name}: it is not the document that was issued; the right "
            "one is in the run's folder",
            file=sys.stderr,
        )


def _in_months(grouped: DataFrame, target: str) -> DataFrame:
    """Returns lines by the month that shows them; notes and carried lines are in `target`."""
    group = sf.col("group")
    next_one = (group == CARRIED) | group.startswith(NOTE)
    month = sf.when(next_one, sf.lit(target)).otherwise(group)
    return grouped.withColumn("month", month).drop("group")
