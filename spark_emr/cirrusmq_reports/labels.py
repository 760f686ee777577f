"""The labels of resources, from exports of Directory, also kept for deleted resources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from cirrusmq_reports.command import materialize
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.publication import Outputs, Part
from cirrusmq_reports.records import Reader
from cirrusmq_reports.schemas import DIRECTORY

LABEL_TABLE = "labels"
LABEL_SCHEMA = "id STRING, tags STRING, shown_ms BIGINT"
"""`tags`: as JSON; `shown_ms`: the time of the export that showed them last."""
LABELED = "id STRING, labels MAP<STRING, STRING>, attributes STRUCT<labels: MAP<STRING, STRING>>"
"""The fields read of the document of a queue, a topic or a subscription."""
_PART = "all"


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels for lines, and the table's parts from now on."""

    frame: DataFrame | None
    parts: Sequence[Part]

    def on(self, lines: DataFrame) -> DataFrame:
        """Returns the lines with `tags`; lines with tags keep them."""
        if self.frame is None:
            return lines
        found = self.frame.select(
            sf.col("id").alias("resource_id"), sf.col("tags").alias("found_tags")
        )
        tagged = lines.join(sf.broadcast(found), ["resource_id"], "left")
        tags = sf.coalesce("tags", "found_tags")
        return tagged.withColumn("tags", tags).select(*lines.columns)


def labels_of(spark: SparkSession, outputs: Outputs, exports: Sequence[Export]) -> Labels:
    """Returns the labels in these exports, and the last known labels of other resources."""
    before = outputs.published.all_of(LABEL_TABLE)
    if not exports:
        known = outputs.read(spark, before, LABEL_SCHEMA).persist() if before else None
        return Labels(known, before)
    reader = Reader(spark, DIRECTORY)
    shown = outputs.read(spark, before, LABEL_SCHEMA)
    for export in exports:
        shown = shown.unionByName(_shown(reader.full(export), export.at_ms))
    newest = Window.partitionBy("id").orderBy(sf.col("shown_ms").desc())
    newest_shown = shown.withColumn("place", sf.row_number().over(newest)).where("place = 1")
    rows = materialize(newest_shown.drop("place"), [reader])
    parts = outputs.write(rows.withColumn("kept_in", sf.lit(_PART)), LABEL_TABLE, "kept_in")
    return Labels(rows, parts)


def _shown(items: DataFrame, at_ms: int) -> DataFrame:
    """Returns the columns of LABEL_SCHEMA, from the column `item` of Directory."""
    document = sf.from_json("item.document.S", LABELED)
    found = items.where(sf.col("item.pk.S").startswith("A#")).select(document.alias("document"))
    labels = sf.coalesce("document.attributes.labels", "document.labels")
    return found.where("document.id IS NOT NULL").select(
        "document.id",
        sf.when(sf.size(labels) > 0, sf.to_json(labels)).alias("tags"),
        sf.lit(at_ms).cast("bigint").alias("shown_ms"),
    )
