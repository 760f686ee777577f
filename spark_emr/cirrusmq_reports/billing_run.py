"""One run of billing: takes the exports into the ledger, charges usage and closes due months."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from cirrusmq_reports import VERSION
from cirrusmq_reports.adjustments import ADJUSTMENT_SCHEMA, Adjustment
from cirrusmq_reports.billing_plan import Due, Plan, due_months
from cirrusmq_reports.billing_state import FORMAT, State, format_of, is_by_record
from cirrusmq_reports.billing_tables import ADJUSTMENT_TABLE, OLD_LINES, parts_of
from cirrusmq_reports.charging import Charging, Found, tell_different, usage_parts
from cirrusmq_reports.closing import Closed, Closing
from cirrusmq_reports.command import Session
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.folding import LEDGER, USAGE_TABLE, kept_parts, oldest_kept
from cirrusmq_reports.labels import labels_of
from cirrusmq_reports.ledger import take
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.publication import Outputs, Part, Published
from cirrusmq_reports.rate_card import RateCard
from cirrusmq_reports.times import iso_day, month_ms, next_month


def state_of(published: Published, exports: Sequence[Export]) -> State:
    """Returns the state before the run.

    Raises BadInput if the bills are of a later release, or of an old one after which a full export
    is needed.
    """
    if not published.run:
        return State()
    if format_of(published.state) > FORMAT:
        raise BadInput(
            f"the bills in the output are of a later release (format {format_of(published.state)}, "
            f"and this one knows {FORMAT}): run that release's job, or what it billed would be "
            "billed again"
        )
    if is_by_record(published.state):
        return State.of(published.state)
    if not any(export.full for export in exports):
        raise BadInput(
            f"{exports[0].folder}: the bills in the output are of a release before this one: the "
            "first run needs one whole export of Usage"
        )
    return State()


@dataclass(frozen=True)
class Bill:
    """One run: computes all outputs first, then writes, then publishes them."""

    session: Session
    outputs: Outputs
    card: RateCard
    before: State
    options: Namespace

    @property
    def spark(self) -> SparkSession:
        """The Spark session."""
        return self.session()

    def make(
        self,
        plan: Plan,
        exports: Sequence[Export],
        unread: Sequence[Export],
        adjustments: Sequence[Adjustment],
        directories: Sequence[Export] = (),
    ) -> None:
        """Takes the exports, charges, closes due months, writes, publishes. Raises Outdated.

        `unread`: the exports to read; an earlier run has read the others.
        """
        outputs, before = self.outputs, self.before
        if before.card:
            last = month_ms(next_month(before.closed_through))
            self.card.check_unchanged(before.card, last)
        tell_different(outputs, outputs.finish_copies(before.documents_run))
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
            usage = [*usage_parts(self.outputs), *parts_of(taken.parts, USAGE_TABLE)]
            due, plan = due_months(
                plan,
                replace(before, closed={**before.closed, **dict.fromkeys(self._old_months(), 0)}),
                {part.part for part in usage},
                self.options.close_days,
                accept_gaps=self.options.accept_gaps,
            )
            if old:
                # A run has one index of documents: due months close in the next run.
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
            found = Found(
                taken=taken,
                old=old,
                billed={**before.closed, **dict.fromkeys(self._old_months(), outputs.sequence)},
                adjusted=adjusted,
                usage=usage,
                labels=labels_of(self.spark, outputs, directories),
                exports=[export.folder.rpartition("/")[2] for export in exports],
            )
            charging = Charging(self.spark, outputs, self.card, before, self.options)
            charging.publish(self._closed_state(after, due), found, due)
        finally:
            self.spark.catalog.clearCache()

    # Earlier parts, and the new ones.

    def _old_months(self) -> list[str]:
        """Returns months with closed invoices of an earlier release that are not taken over yet."""
        published = self.outputs.published
        if not published.run or is_by_record(published.state):
            return []
        closed = str(published.state.get("closed_through", ""))
        return sorted(
            {part.part for part in published.all_of(OLD_LINES) if part.part <= closed}
            | ({closed} if closed else set())
        )

    def _ledger_from(self, to_ms: int) -> str:
        """Returns the first month that the ledger keeps from now on; it never goes back."""
        parts = self.outputs.published.all_of(LEDGER)
        oldest = oldest_kept(to_ms, self.options.ledger_months)
        dropped = len(kept_parts(parts, oldest)) < len(parts)
        return max(self.before.ledger_from, oldest if dropped else "")

    def _take_over(self) -> Closed | None:
        """Makes documents of the closed invoices of an earlier release, or returns None."""
        months = self._old_months()
        if not months:
            return None
        parts = [each for each in self.outputs.published.all_of(OLD_LINES) if each.part in months]
        closing = Closing(self.spark, self.outputs, self.card)
        return closing.take_over(parts, {"code": VERSION, "exports": [], "gaps": []})

    def _adjustments(self, given: Sequence[Adjustment]) -> list[Part]:
        """Writes the adjustments that no earlier run had. Returns their parts."""
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
        """Returns the state after the due months are closed."""
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

    def _read(self, table: str, schema: str) -> DataFrame:
        parts = self.outputs.published.all_of(table)
        return self.outputs.read(self.spark, parts, schema)
