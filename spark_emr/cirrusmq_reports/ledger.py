"""Takes the exports' usage records into the ledger, and odd ones into the quarantine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports.billing_plan import shown_days
from cirrusmq_reports.columns import columns_of
from cirrusmq_reports.command import materialize
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.folding import LEDGER, USAGE_TABLE, within
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.publication import Outputs, Part
from cirrusmq_reports.records import Reader
from cirrusmq_reports.schemas import USAGE
from cirrusmq_reports.transforms.usage_by_hour import ledger_rows, usage_by_hour
from cirrusmq_reports.transforms.usage_entries import TOO_OLD, WHOLE_RECORD, usage_entries
from cirrusmq_reports.transforms.usage_records import (
    LEDGER_SCHEMA,
    compared,
    conflicting,
    usage_records,
    with_export,
)

QUARANTINE = "quarantine"
QUARANTINE_SCHEMA = (
    "record BINARY, entry INT, reason STRING, item STRING, written_ms BIGINT, content BIGINT, "
    "table_id STRING, export STRING, shown_ms BIGINT"
)
QUARANTINE_PART = "all"
CONFLICT = "conflict: the record was shown with another content before, which is billed"
_ODD_MOST, _ODD_SHARE_MOST = 100, 0.01
_OF_RECORD = ("item", "written_ms", "content", "table_id", "export", "shown_ms")
_ENTRY = (
    "record", *_OF_RECORD, "entry", "odd", "account", "resource", "resource_id", "kind", "minute",
    "count", "bytes", "attempts",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The result of taking a run's exports."""

    parts: Sequence[Part]
    """New parts of the ledger and of usage."""
    quarantine: Sequence[Part]
    """All parts of the quarantine from now on."""
    set_aside: Counter[str]
    """Reason → number of entries and records in the quarantine now."""
    removed: Mapping[str, int]
    """Table → the time of an export that lacks records, if a person accepted that."""
    changed: bool
    """True if the run changed the ledger or the quarantine."""


def take(
    spark: SparkSession,
    outputs: Outputs,
    exports: Sequence[Export],
    *,
    accept_removed: bool,
    removed_ms: Mapping[str, int],
    released: Sequence[str] = (),
    kept_from_ms: int = 0,
) -> Taken:
    """Writes the rows of records that the ledger lacks.

    `kept_from_ms`: the ledger has no records that were written earlier. Raises BadInput if an
    export lacks records, or if too many of its items are odd.
    """
    reader = Reader(spark, USAGE)
    intake = _Intake(spark, outputs, exports, reader, removed_ms, released, kept_from_ms)
    return intake.take(accept_removed=accept_removed)


@dataclass(frozen=True)
class _Intake:
    """One run's exports beside the ledger.

    A record is found in the ledger by its key, in the days of writing that the exports can show.
    """

    spark: SparkSession
    outputs: Outputs
    exports: Sequence[Export]
    reader: Reader
    removed_ms: Mapping[str, int]
    released: Sequence[str]
    kept_from_ms: int

    def take(self, *, accept_removed: bool) -> Taken:
        days = shown_days(self.exports)
        records = usage_records(self.reader, self.exports)
        both = compared(records, self._ledger(days), self.exports, self.removed_ms)
        entries = usage_entries(with_export(both, self.exports), self.released, self.kept_from_ms)
        # Kept as entries, which are small: items are read, and moved, once.
        found = materialize(entries, [self.reader])
        removed = self._missing(found, accept=accept_removed)
        odd_before = self._quarantined()
        rows = self._without_known(found.where("fresh"), days).select(*_ENTRY)
        if self.outputs.published.all_of(QUARANTINE):
            fresh = rows.join(odd_before.select("record").distinct(), "record", "left_anti")
            rows = fresh.select(*_ENTRY).unionByName(self._retried(odd_before).select(*_ENTRY))
        odd = self._odd(rows, found, odd_before).persist()
        counts, before = _reasons(odd), Counter[str]()
        more = _records(odd) if counts else 0
        if self.outputs.published.all_of(QUARANTINE):
            before = _reasons(odd_before)
            more -= _records(odd_before)
        self._refuse_share(more)
        parts = self.outputs.write(ledger_rows(rows.where("odd IS NULL")), LEDGER, "written_day")
        if parts:
            ledger = self.outputs.read(self.spark, parts, LEDGER_SCHEMA)
            parts += self.outputs.write(usage_by_hour(ledger), USAGE_TABLE, "month")
        changed = counts != before
        kept = self.outputs.published.all_of(QUARANTINE)
        if changed:
            kept = self.outputs.write(
                odd.withColumn("kept_in", sf.lit(QUARANTINE_PART)), QUARANTINE, "kept_in"
            )
        return Taken(
            parts=parts,
            quarantine=kept,
            set_aside=counts,
            removed=removed,
            changed=changed or bool(parts),
        )

    def _ledger(self, days: set[str]) -> DataFrame:
        parts = within(self.outputs.published.all_of(LEDGER), days)
        rows = self.outputs.read(self.spark, parts, LEDGER_SCHEMA)
        # From a folded month, only these days are read.
        is_folded = any(part.part not in days for part in parts)
        return rows.where(sf.col("written_day").isin(*sorted(days))) if is_folded else rows

    def _quarantined(self) -> DataFrame:
        parts = self.outputs.published.all_of(QUARANTINE)
        return self.outputs.read(self.spark, parts, QUARANTINE_SCHEMA)

    def _missing(self, found: DataFrame, *, accept: bool) -> dict[str, int]:
        """Returns tables whose full exports lack expected records, and the export's time.

        Raises BadInput if that is not accepted.
        """
        if not any(export.full for export in self.exports):
            return {}
        rows = found.select(sf.explode("missing").alias("number"), "known_day", "record")
        counts = rows.groupBy("number", "known_day").count().collect()
        if accept:
            # By time: the last export of a table counts.
            numbers = sorted({row["number"] for row in counts})
            return {self.exports[each].table_id: self.exports[each].at_ms for each in numbers}
        if counts:
            number = min(row["number"] for row in counts)
            by_day = {row["known_day"]: row["count"] for row in counts if row["number"] == number}
            total, days = sum(by_day.values()), sorted(by_day)
            shown = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
            raise BadInput(
                f"{self.exports[number].folder}: it lacks {total:,} usage records of {shown} that "
                "were shown before and whose time to live is not over: is it of a table that was "
                "emptied or restored? --accept-removed goes on, and keeps them billed"
            )
        return {}

    def _without_known(self, fresh: DataFrame, days: set[str]) -> DataFrame:
        """Returns records without known ones in other days of the ledger: TTL may be very late."""
        older = [part for part in self.outputs.published.all_of(LEDGER) if part.part not in days]
        if not older:
            return fresh
        day = sf.date_format(sf.timestamp_millis("written_ms"), "yyyy-MM-dd")
        shown = {row["day"] for row in fresh.select(day.alias("day")).distinct().collect()} - days
        if not within(older, shown):
            return fresh
        return fresh.join(self._ledger(shown).select("record").distinct(), "record", "left_anti")

    def _retried(self, odd: DataFrame) -> DataFrame:
        """Returns the entries of the quarantine, read again by this release."""
        waiting = odd.where(~self._staying())
        items = waiting.groupBy("record").agg(
            *[sf.first(name).alias(name) for name in _OF_RECORD],
            sf.collect_set("entry").alias("entries"),
        )
        read = items.withColumns({"item": sf.from_json("item", USAGE.item), "fresh": sf.lit(True)})
        entries = usage_entries(read, self.released)
        mine = sf.array_contains("entries", sf.col("entry"))
        return entries.where(mine | sf.array_contains("entries", sf.lit(WHOLE_RECORD)))

    def _staying(self) -> Column:
        """Returns a condition: the entry stays in the quarantine until a person decides."""
        let_in = sf.lower(sf.hex("record")).isin(*self.released) if self.released else sf.lit(False)
        return (sf.col("reason") == CONFLICT) | ((sf.col("reason") == TOO_OLD) & ~let_in)

    def _odd(self, rows: DataFrame, found: DataFrame, before: DataFrame) -> DataFrame:
        """Returns the quarantine from now on."""
        columns = [*columns_of(QUARANTINE_SCHEMA)]
        odd = rows.where("odd IS NOT NULL").withColumn("reason", sf.col("odd"))
        staying = before.where(self._staying())
        differing = found.where("differs")
        if not differing.isEmpty():
            later = conflicting(self.reader, self.exports, differing).withColumns(
                {
                    "reason": sf.lit(CONFLICT),
                    "entry": sf.lit(WHOLE_RECORD),
                    "item": sf.to_json("item"),
                }
            )
            new = later.select(columns).join(staying, ["record", "content"], "left_anti")
            staying = staying.unionByName(new.select(columns))
        return odd.select(columns).unionByName(staying.select(columns))

    def _refuse_share(self, more: int) -> None:
        """Raises BadInput if too many items are odd: then the exports are at fault."""
        items = sum(file.items for export in self.exports for file in export.distinct_files)
        if more > _ODD_MOST and more > _ODD_SHARE_MOST * items:
            raise BadInput(
                f"{self.exports[-1].folder}: {more:,} of {items:,} items are odd, more than "
                f"{_ODD_MOST} and 1 %: nothing is billed"
            )


def _reasons(odd: DataFrame) -> Counter[str]:
    """Returns reason → number of entries and records."""
    rows = odd.groupBy("reason").count().collect()
    return Counter({row["reason"]: row["count"] for row in rows})


def _records(odd: DataFrame) -> int:
    """Returns the number of records with entries in the quarantine."""
    return odd.select("record").distinct().count()
