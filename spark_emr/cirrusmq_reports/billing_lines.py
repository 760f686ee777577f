"""Lines that are on no document yet: use of open or closed months, adjustments, carried lines."""

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
"""Lines with their group: carried, of an open month, or later lines for a closed month."""
_CHART_DAYS = 40
_GIVEN = ("account", "used_month", "currency", "kind", "charge", "reason")
"""The columns of a line that an adjustment by amount sets."""


@dataclass(frozen=True)
class OpenLines:
    """Reads usage and lines of earlier runs and of this run."""

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
        """Returns the usage of the months to charge, with `billed`: true if documents have it.

        `adjusted`: all parts of adjustments. An adjustment by quantity is usage of its month's
        last second, so that it is priced after all other usage.
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
        """Returns the parts of adjustments that are on no document."""
        return [part for part in adjusted if part.sequence > self.before.adjusted]

    def _quantities(self, parts: Sequence[Part]) -> DataFrame:
        """Returns the adjustments by quantity, in the columns of USAGE_SCHEMA."""
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
        """Returns the open month that shows the lines for the next document."""
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
        """Returns all lines that are on no document, in the columns of GROUPED_SCHEMA."""
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
        """Returns the lines of adjustments by quantity, with reasons. They count as no use."""
        reasons = given.select(
            sf.concat(sf.lit(PREFIX), "id").alias("resource"), sf.col("reason").alias("said")
        )
        found = lines.where(is_adjustment()).join(sf.broadcast(reasons), ["resource"], "left")
        none = sf.lit(0).cast("bigint")
        values = {"reason": sf.col("said"), "count": none, "bytes": none, "used_day": _no_day()}
        return found.withColumns(values).select(*columns_of(OPEN_LINE_SCHEMA))

    def _amounts(self, given: DataFrame) -> DataFrame:
        """Returns the adjustments by amount, as lines."""
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
    """Returns a condition: the line or usage row is an adjustment, without a resource."""
    return sf.col("resource").startswith(PREFIX)
