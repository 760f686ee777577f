"""One run of billing: the exports into the ledger, its usage charged, months closed, all shown."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports import VERSION
from cirrusmq_reports.adjustments import ADJUSTMENT_SCHEMA, Adjustment
from cirrusmq_reports.billing_lines import OpenLines, is_adjustment
from cirrusmq_reports.billing_plan import (
    Due,
    Plan,
    due_months,
)
from cirrusmq_reports.billing_show import Showing
from cirrusmq_reports.billing_state import FORMAT, State
from cirrusmq_reports.closing import (
    CARRIED_TABLE,
    DOCUMENT_TABLE,
    LINE_TABLE,
    Closed,
    Closing,
)
from cirrusmq_reports.command import Session
from cirrusmq_reports.documents import CARRIED, DOCUMENT_SCHEMA, NOTE
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.folding import (
    LEDGER,
    USAGE_TABLE,
    fold,
    folds,
    kept_parts,
    oldest_kept,
)
from cirrusmq_reports.labels import LABEL_TABLE, Labels, labels_of
from cirrusmq_reports.ledger import QUARANTINE, Taken, take
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.parties import PARTY_SCHEMA, party_rows
from cirrusmq_reports.publication import Outputs, Part, Published
from cirrusmq_reports.rate_card import RateCard
from cirrusmq_reports.times import DAY_MS, iso_day, month_ms, next_month
from cirrusmq_reports.transforms.charged_usage import charged_usage
from cirrusmq_reports.transforms.invoice_lines import (
    DOCUMENT_LINE_SCHEMA,
    LINE_SCHEMA,
    invoice_lines,
)
from cirrusmq_reports.transforms.usage_by_hour import USAGE_SCHEMA
from cirrusmq_reports.transforms.usage_records import LEDGER_SCHEMA

OPEN_TABLE, ADJUSTMENT_TABLE, OLD_LINES = "open_lines", "adjustments", "invoice_lines"
PARTY_TABLE = "parties"
BILL_TABLES = (
    LEDGER, USAGE_TABLE, QUARANTINE, DOCUMENT_TABLE, LINE_TABLE, CARRIED_TABLE, OPEN_TABLE,
    ADJUSTMENT_TABLE, OLD_LINES, LABEL_TABLE, PARTY_TABLE,
)  # fmt: skip
ANALYST_TABLES = {
    LEDGER: f"{LEDGER_SCHEMA}, run STRING",
    USAGE_TABLE: f"{USAGE_SCHEMA}, run STRING",
    DOCUMENT_TABLE: f"{DOCUMENT_SCHEMA}, run STRING",
    LINE_TABLE: f"{DOCUMENT_LINE_SCHEMA}, closed STRING, run STRING",
    OPEN_TABLE: f"{LINE_SCHEMA}, kept_in STRING, run STRING",
    PARTY_TABLE: f"{PARTY_SCHEMA}, kept_in STRING, run STRING",
}
"""The tables that analysts read, with the columns of their files."""
_OPEN_PART = "all"


def state_of(published: Published, exports: Sequence[Export]) -> State:
    """The state before the run. Raises BadInput: old bills need a whole export to go on from."""
    if not published.run or published.state.get("format") == FORMAT:
        return State.of(published.state) if published.run else State()
    if not any(export.full for export in exports):
        raise BadInput(
            f"{exports[0].folder}: the bills in the output are of a release before this one: the "
            "first run needs one whole export of Usage"
        )
    return State()


@dataclass(frozen=True)
class Bill:
    """One run: everything is worked out first, then written, then published."""

    session: Session
    outputs: Outputs
    card: RateCard
    before: State
    options: Namespace

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.session()

    def make(
        self,
        plan: Plan,
        exports: Sequence[Export],
        unread: Sequence[Export],
        adjustments: Sequence[Adjustment],
        directories: Sequence[Export] = (),
    ) -> None:
        """Take the exports, charge, close what is due, write, publish. Raises Outdated.

        `unread`: those of the exports that are read; the others were, by a run before.
        """
        outputs, before = self.outputs, self.before
        if before.card:
            last = month_ms(next_month(before.closed_through))
            self.card.check_unchanged(before.card, last)
        self._tell_different(outputs.finish_copies(before.documents_run))
        outputs.sequence = before.sequence + 1
        try:
            taken = take(
                self.spark,
                outputs,
                unread,
                accept_removed=self.options.accept_removed,
                removed_ms={table.id: table.removed_ms for table in plan.tables},
                released=self.options.release,
                kept_from_ms=month_ms(before.ledger_from) if before.ledger_from else 0,
            )
            old = self._take_over()
            adjusted = self._adjustments(adjustments)
            usage = [*self._usage_parts(), *self._of(taken.parts, USAGE_TABLE)]
            due, plan = due_months(
                plan,
                replace(before, closed={**before.closed, **dict.fromkeys(self._old_months(), 0)}),
                {part.part for part in usage},
                self.options.close_days,
                accept_gaps=self.options.accept_gaps,
            )
            if old:
                # One run, one index of documents: months that are due close in the next one.
                due = Due(closing=[], waiting=due.waiting)
            after = replace(
                before,
                sequence=outputs.sequence,
                to_ms=plan.to_ms,
                tables=[
                    replace(each, removed_ms=taken.removed.get(each.id, each.removed_ms))
                    for each in plan.tables
                ],
                coverage=plan.coverage,
                accepted=plan.accepted,
                prices=self.card.digest,
                taken=before.taken_with(exports, plan.to_ms),
                ledger_from=self._ledger_from(plan.to_ms),
            )
            same = replace(after, sequence=before.sequence, taken=before.taken) == before
            if same and not (taken.changed or adjusted or due.closing):
                print("these exports show nothing new: the bills stay as they are", file=sys.stderr)
                outputs.discard()
                return
            after = self._closed_state(after, due)
            labels = labels_of(self.spark, outputs, directories)
            self._bill(after, taken, old, adjusted, usage, due, exports, labels)
        finally:
            self.spark.catalog.clearCache()

    # What was there before, and what is added to it.

    def _of(self, parts: Sequence[Part], table: str) -> list[Part]:
        return [part for part in parts if part.dataset == table]

    def _usage_parts(self) -> list[Part]:
        """Those by record; releases of before kept days."""
        return [part for part in self.outputs.published.all_of(USAGE_TABLE) if part.sequence]

    def _old_months(self) -> list[str]:
        """Months with closed invoices of a release of before that are not taken over yet."""
        published = self.outputs.published
        if not published.run or published.state.get("format") == FORMAT:
            return []
        closed = str(published.state.get("closed_through", ""))
        return sorted(
            {part.part for part in published.all_of(OLD_LINES) if part.part <= closed}
            | ({closed} if closed else set())
        )

    def _ledger_from(self, to_ms: int) -> str:
        """The first month that the ledger keeps from now on; it never goes back."""
        parts = self.outputs.published.all_of(LEDGER)
        oldest = oldest_kept(to_ms, self.options.ledger_months)
        dropped = len(kept_parts(parts, oldest)) < len(parts)
        return max(self.before.ledger_from, oldest if dropped else "")

    def _take_over(self) -> Closed | None:
        """The closed invoices of a release of before, as documents."""
        months = self._old_months()
        if not months:
            return None
        parts = [each for each in self.outputs.published.all_of(OLD_LINES) if each.part in months]
        closing = Closing(self.spark, self.outputs, self.card)
        return closing.take_over(parts, {"code": VERSION, "exports": [], "gaps": []})

    def _adjustments(self, given: Sequence[Adjustment]) -> list[Part]:
        """Write the adjustments that were not given before."""
        known = self._read(ADJUSTMENT_TABLE, ADJUSTMENT_SCHEMA).collect() if given else []
        by_id = {row["id"]: tuple(row) for row in known}
        for each in given:
            if by_id.get(each.id, each.row()) != each.row():
                raise BadInput(f"the adjustment {each.id} was given before with other values")
        fresh = [each.row() for each in given if each.id not in by_id]
        if not fresh:
            return []
        rows = self.spark.createDataFrame(fresh, ADJUSTMENT_SCHEMA)
        return self.outputs.write(rows, ADJUSTMENT_TABLE, "used_month")

    def _closed_state(self, after: State, due: Due) -> State:
        """The state once the months that are due are closed."""
        now = self.outputs.sequence
        closed = {**after.closed, **dict.fromkeys(self._old_months(), now)}
        if due.closing:
            closed = {**dict.fromkeys(closed, now), **dict.fromkeys(due.closing, now)}
        if closed == dict(after.closed):
            return after
        end_ms = month_ms(next_month(max(closed)))
        entries = [
            (iso_day(prices.from_ms), prices.digest) for prices in self.card.in_force(end_ms)
        ]
        adjusted = now if due.closing else after.adjusted
        return replace(
            after,
            closed=closed,
            card=entries,
            adjusted=adjusted,
            documents_run=self.outputs.run,
        )

    # Charging and closing.

    def _bill(
        self,
        after: State,
        taken: Taken,
        old: Closed | None,
        adjusted: Sequence[Part],
        usage: Sequence[Part],
        due: Due,
        exports: Sequence[Export],
        labels: Labels,
    ) -> None:
        outputs, own = self.outputs, OpenLines(self.spark, self.outputs, self.before)
        billed_before = {
            **self.before.closed,
            **dict.fromkeys(self._old_months(), outputs.sequence),
        }
        adjustments = [*outputs.published.all_of(ADJUSTMENT_TABLE), *adjusted]
        used = own.usage(usage, adjustments, billed_before, after.to_ms)
        charged = charged_usage(used, self.card).persist()
        lines = invoice_lines(charged).where("NOT billed").drop("billed")
        carried = outputs.published.all_of(CARRIED_TABLE)
        target = due.closing[0] if due.closing else own.target(after, usage)
        grouped = own.grouped(lines, adjustments, carried, billed_before, target)
        grouped = labels.on(grouped).persist()
        documents = [
            *outputs.published.all_of(DOCUMENT_TABLE),
            *outputs.published.all_of(LINE_TABLE),
        ]
        parties = party_rows(self.card, self.options.region, outputs.generated_ms)
        written = [
            *taken.parts,
            *adjusted,
            *(old.parts if old else ()),
            *labels.parts,
            *outputs.write_few(self.spark, parties, PARTY_SCHEMA, PARTY_TABLE, _OPEN_PART),
        ]
        open_lines = grouped
        if due.closing:
            notes = [f"{NOTE}{month}" for month in billed_before]
            on = sf.col("group").isin(CARRIED, *due.closing, *notes)
            made_of = {
                "code": VERSION,
                "exports": self._exports(due.closing, taken, exports),
                "gaps": [stretch.days for stretch in after.accepted],
            }
            closing = Closing(self.spark, outputs, self.card)
            closed = closing.close(grouped.where(on), due.closing, made_of)
            written += closed.parts
            carried = self._of(closed.parts, CARRIED_TABLE)
            left = outputs.read(self.spark, carried, LINE_SCHEMA).withColumn(
                "group", sf.lit(CARRIED)
            )
            target = own.target(after, usage)
            open_lines = grouped.where(~on).unionByName(left.select(grouped.columns))
        month = sf.when(
            (sf.col("group") == CARRIED) | sf.col("group").startswith(NOTE), sf.lit(target)
        ).otherwise(sf.col("group"))
        open_lines = open_lines.withColumn("month", month).drop("group").persist()
        written += outputs.write(
            open_lines.withColumn("kept_in", sf.lit(_OPEN_PART)), OPEN_TABLE, "kept_in"
        )
        documents += [part for part in written if part.dataset in (DOCUMENT_TABLE, LINE_TABLE)]
        Showing(self.spark, outputs, self.options.close_days, self.card).show(
            after, charged.where(~is_adjustment()), open_lines, documents, taken, due
        )
        ledger = kept_parts(outputs.published.all_of(LEDGER), after.ledger_from)
        # By what was issued before this run, so that what is folded is on documents.
        old_parts = folds([*ledger, *self._usage_parts()], self.before.closed, self.before.to_ms)
        written += fold(self.spark, outputs, old_parts)
        folded = {part for each in old_parts for part in each.parts}
        kept = [
            *(part for part in ledger if part not in folded),
            *(part for part in outputs.published.all_of(USAGE_TABLE) if part not in folded),
            *outputs.published.all_of(OLD_LINES),
            *outputs.published.all_of(DOCUMENT_TABLE),
            *outputs.published.all_of(LINE_TABLE),
            *outputs.published.all_of(ADJUSTMENT_TABLE),
            *taken.quarantine,
            *([] if due.closing else carried),
        ]
        for table, schema in ANALYST_TABLES.items():
            outputs.write_empty(self.spark, table, schema)
        self._tell_different(
            outputs.publish(
                after.as_dict(),
                [*kept, *written],
                propose=self.options.propose,
                documents_run=after.documents_run,
            )
        )

    def _exports(self, months: Sequence[str], taken: Taken, exports: Sequence[Export]) -> list[str]:
        """The exports that first showed the records of these months' days, and this run's."""
        parts = [*self.outputs.published.all_of(LEDGER), *self._of(taken.parts, LEDGER)]
        last = iso_day(month_ms(next_month(months[-1])) + DAY_MS)
        within = [part for part in parts if months[0] <= part.part <= last]
        known = self.outputs.read(self.spark, within, LEDGER_SCHEMA).select("export").distinct()
        own = {export.folder.rpartition("/")[2] for export in exports}
        return sorted({row["export"] for row in known.collect()} | own)

    def _tell_different(self, names: Sequence[str]) -> None:
        for name in names:
            print(
                f"{self.outputs.folder}/{name}: it is not the document that was issued; the right "
                "one is in the run's folder",
                file=sys.stderr,
            )

    def _read(self, table: str, schema: str) -> DataFrame:
        parts = self.outputs.published.all_of(table)
        return self.outputs.read(self.spark, parts, schema)
