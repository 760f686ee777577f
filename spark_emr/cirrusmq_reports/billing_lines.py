"""The lines that are on no document yet: of open months, of closed ones, adjustments, carried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports.adjustments import ADJUSTMENT_SCHEMA
from cirrusmq_reports.billing_state import State
from cirrusmq_reports.closing import GROUPED_SCHEMA
from cirrusmq_reports.columns import columns_of
from cirrusmq_reports.documents import CARRIED, NOTE
from cirrusmq_reports.publication import Outputs, Part
from cirrusmq_reports.times import DAY_MS, iso_month
from cirrusmq_reports.transforms.invoice_lines import LINE_SCHEMA
from cirrusmq_reports.transforms.usage_by_hour import USAGE_SCHEMA

_CHART_DAYS = 40


@dataclass(frozen=True)
class OpenLines:
    """Reads usage and lines of the runs before, with those that this run has written."""

    spark: SparkSession
    outputs: Outputs
    before: State

    def usage(self, parts: Sequence[Part], billed: Mapping[str, int], to_ms: int) -> DataFrame:
        """The usage of the months to charge, with `billed`: whether documents have it."""
        shown_from = iso_month(max(0, to_ms - _CHART_DAYS * DAY_MS))
        fresh = {part.part for part in parts if part.sequence > billed.get(part.part, 0)}
        wanted = [part for part in parts if part.part in fresh or part.part >= shown_from]
        on = [part for part in wanted if part.sequence <= billed.get(part.part, 0)]
        off = [part for part in wanted if part.sequence > billed.get(part.part, 0)]
        read = self.outputs.read
        return (
            read(self.spark, on, USAGE_SCHEMA)
            .withColumn("billed", sf.lit(True))
            .unionByName(read(self.spark, off, USAGE_SCHEMA).withColumn("billed", sf.lit(False)))
        )

    def target(self, after: State, usage: Sequence[Part]) -> str:
        """The open month that shows what goes on the next document."""
        months = sorted({part.part for part in usage} - set(after.closed))
        return months[0] if months else iso_month(after.to_ms)

    def grouped(
        self,
        lines: DataFrame,
        pending: DataFrame,
        carried: Sequence[Part],
        billed: Mapping[str, int],
        target: str,
    ) -> DataFrame:
        """All lines that are on no document, in the columns of GROUPED_SCHEMA."""
        late = sf.col("month").isin(*billed) if billed else sf.lit(False)
        own = sf.when(late, sf.concat(sf.lit(NOTE), "month")).otherwise(sf.col("month"))
        earlier = self.outputs.read(self.spark, carried, LINE_SCHEMA)
        columns = [*columns_of(GROUPED_SCHEMA)]
        return (
            lines.withColumn("group", own)
            .select(columns)
            .unionByName(pending.withColumn("group", sf.lit(target)).select(columns))
            .unionByName(earlier.withColumn("group", sf.lit(CARRIED)).select(columns))
        )

    def pending(self, parts: Sequence[Part]) -> DataFrame:
        """The adjustments that are on no document, as lines."""
        fresh = [part for part in parts if part.sequence > self.before.adjusted]
        rows = self.outputs.read(self.spark, fresh, ADJUSTMENT_SCHEMA)
        values = {
            "month": sf.col("used_month"),
            "resource": sf.concat(sf.lit("adjustment:"), "id"),
            "kind": sf.col("kind"),
            "count": sf.lit(0).cast("bigint"),
            "bytes": sf.lit(0).cast("bigint"),
        }
        known = rows.withColumns(values)
        return known.select(
            *[
                sf.col(name) if name in known.columns else sf.lit(None).cast(kind).alias(name)
                for name, kind in columns_of(LINE_SCHEMA).items()
            ]
        )
