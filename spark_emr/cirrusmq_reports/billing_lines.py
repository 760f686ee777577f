"""The lines that are on no document yet: of open months, of closed ones, adjustments, carried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports.adjustments import ADJUSTMENT_SCHEMA, PREFIX
from cirrusmq_reports.billing_state import State
from cirrusmq_reports.columns import columns_of
from cirrusmq_reports.documents import CARRIED, NOTE
from cirrusmq_reports.publication import Outputs, Part
from cirrusmq_reports.rate_card import KEPT
from cirrusmq_reports.times import DAY_MS, iso_month
from cirrusmq_reports.transforms.invoice_lines import LINE_SCHEMA, OPEN_LINE_SCHEMA
from cirrusmq_reports.transforms.usage_by_hour import USAGE_SCHEMA

GROUPED_SCHEMA = f"{OPEN_LINE_SCHEMA}, group STRING"
"""Lines with their group: carried, of an open month, or what came later for a closed one."""
_CHART_DAYS = 40
_GIVEN = ("account", "used_month", "currency", "kind", "charge", "reason")
"""What an adjustment by amount has of a line."""


@dataclass(frozen=True)
class OpenLines:
    """Reads usage and lines of the runs before, with those that this run has written."""

    spark: SparkSession
    outputs: Outputs
    before: State

    def usage(
        self,
        parts: Sequence[Part],
        adjusted: Sequence[Part],
        billed: Mapping[str, int],
        to_ms: int,
    ) -> DataFrame:
        """The usage of the months to charge, with `billed`: whether documents have it.

        `adjusted`: all parts of adjustments. Those by quantity are usage of their month's last
        second, so that they are priced behind all other usage.
        """
        shown_from = iso_month(max(0, to_ms - _CHART_DAYS * DAY_MS))
        fresh = {part.part for part in parts if part.sequence > billed.get(part.part, 0)}
        fresh |= {part.part for part in self._fresh(adjusted)}
        wanted = [part for part in parts if part.part in fresh or part.part >= shown_from]
        on = [part for part in wanted if part.sequence <= billed.get(part.part, 0)]
        off = [part for part in wanted if part.sequence > billed.get(part.part, 0)]
        read = self.outputs.read
        issued = [
            part
            for part in adjusted
            if part.sequence <= self.before.adjusted
            and (part.part in fresh or part.part >= shown_from)
        ]
        return (
            read(self.spark, on, USAGE_SCHEMA)
            .unionByName(self._quantities(issued))
            .withColumn("billed", sf.lit(True))
            .unionByName(
                read(self.spark, off, USAGE_SCHEMA)
                .unionByName(self._quantities(self._fresh(adjusted)))
                .withColumn("billed", sf.lit(False))
            )
        )

    def _fresh(self, adjusted: Sequence[Part]) -> list[Part]:
        """The parts of adjustments that are on no document."""
        return [part for part in adjusted if part.sequence > self.before.adjusted]

    def _quantities(self, parts: Sequence[Part]) -> DataFrame:
        """The adjustments by quantity, in the columns of USAGE_SCHEMA."""
        rows = self.outputs.read(self.spark, parts, ADJUSTMENT_SCHEMA).where("quantity IS NOT NULL")
        after = sf.add_months(sf.to_date(sf.concat("used_month", sf.lit("-01"))), 1)
        kept = sf.col("kind") == KEPT
        none = sf.lit(0).cast("bigint")
        last = sf.timestamp_seconds(sf.unix_timestamp(after.cast("timestamp")) - 1)
        return rows.select(
            "account",
            sf.concat(sf.lit(PREFIX), "id").alias("resource"),
            sf.lit(None).cast("string").alias("resource_id"),
            "kind",
            last.alias("hour"),
            sf.date_format(last, "yyyy-MM-dd").alias("day"),
            sf.col("used_month").alias("month"),
            sf.when(kept, none).otherwise(sf.col("quantity")).alias("count"),
            sf.when(kept, sf.col("quantity")).otherwise(none).alias("bytes"),
        )

    def target(self, after: State, usage: Sequence[Part]) -> str:
        """The open month that shows what goes on the next document."""
        months = sorted({part.part for part in usage} - set(after.closed))
        return months[0] if months else iso_month(after.to_ms)

    def grouped(
        self,
        lines: DataFrame,
        adjusted: Sequence[Part],
        carried: Sequence[Part],
        billed: Mapping[str, int],
        target: str,
    ) -> DataFrame:
        """All lines that are on no document, in the columns of GROUPED_SCHEMA."""
        late = sf.col("month").isin(*billed) if billed else sf.lit(False)
        own = sf.when(late, sf.concat(sf.lit(NOTE), "month")).otherwise(sf.col("month"))
        earlier = self.outputs.read(self.spark, carried, LINE_SCHEMA)
        columns = [*columns_of(GROUPED_SCHEMA)]
        given = self.outputs.read(self.spark, self._fresh(adjusted), ADJUSTMENT_SCHEMA)
        return (
            lines.where(~is_adjustment())
            .withColumn("group", own)
            .select(columns)
            .unionByName(
                self._amounts(given)
                .unionByName(self._priced(lines, given))
                .withColumn("group", sf.lit(target))
                .select(columns)
            )
            .unionByName(
                earlier.withColumns({"used_day": _no_day(), "group": sf.lit(CARRIED)}).select(
                    columns
                )
            )
        )

    def _priced(self, lines: DataFrame, given: DataFrame) -> DataFrame:
        """The lines of adjustments by quantity, with their reasons. They count as no use."""
        reasons = given.select(
            sf.concat(sf.lit(PREFIX), "id").alias("resource"), sf.col("reason").alias("said")
        )
        found = lines.where(is_adjustment()).join(sf.broadcast(reasons), ["resource"], "left")
        none = sf.lit(0).cast("bigint")
        values = {"reason": sf.col("said"), "count": none, "bytes": none, "used_day": _no_day()}
        return found.withColumns(values).select(*columns_of(OPEN_LINE_SCHEMA))

    def _amounts(self, given: DataFrame) -> DataFrame:
        """The adjustments by amount, as lines."""
        columns = columns_of(OPEN_LINE_SCHEMA)
        none = sf.lit(0).cast("bigint")
        values = {
            **{name: sf.lit(None).cast(kind) for name, kind in columns.items()},
            **{name: sf.col(name) for name in _GIVEN},
            "month": sf.col("used_month"),
            "resource": sf.concat(sf.lit(PREFIX), "id"),
            "count": none,
            "bytes": none,
        }
        rows = given.where("quantity IS NULL")
        return rows.select(*[value.alias(name) for name, value in values.items()])


def _no_day() -> Column:
    return sf.lit(None).cast("string")


def is_adjustment() -> Column:
    """Whether a line or a row of usage is of an adjustment, and of no resource."""
    return sf.col("resource").startswith(PREFIX)
