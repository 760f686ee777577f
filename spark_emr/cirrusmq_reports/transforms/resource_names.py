"""The account, kind, name and rewind settings of each resource, from Directory."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import whole
from cirrusmq_reports.schemas import DOCUMENT, QUEUE_DOCUMENT

NAMES_SCHEMA = (
    "id STRING, account STRING, kind STRING, name STRING, deleted BOOLEAN, rewind_ms BIGINT, "
    "rewind_floor_ms BIGINT, purged_ms BIGINT, labels STRING"
)
_SETTINGS = ("rewind_ms", "rewind_floor_ms", "purged_ms")


def resource_names(items: DataFrame) -> DataFrame:
    """Returns the columns of NAMES_SCHEMA, one row for each id, from Directory's column `item`.

    `deleted`: the resource is gone, and its id is known for a while. The settings are the queue's,
    also for its receivers; 0 for other resources. The labels, too, as the text of a JSON object;
    null for other resources.
    """
    documents = items.where(sf.col("item.pk.S").startswith("I#")).select(
        sf.col("item.sk.S").alias("id"),
        sf.from_json("item.document.S", DOCUMENT).alias("document"),
        whole("item.expires_at").isNotNull().alias("deleted"),
    )
    # A duplicate record in the export must not double the resource's messages.
    once = documents.groupBy("id").agg(
        sf.max("document").alias("document"), sf.max("deleted").alias("deleted")
    )
    names = once.select("id", "document.*", "deleted")
    of_queue = sf.col("kind").isin("queue", "receiver")
    queue = sf.when(of_queue, sf.lower(sf.substring_index("name", "/", 1)))
    with_queue = names.withColumn("queue", queue).join(_queues(items), ["account", "queue"], "left")
    return with_queue.select(
        "id",
        "account",
        "kind",
        "name",
        "deleted",
        *[sf.coalesce(name, sf.lit(0)).alias(name) for name in _SETTINGS],
        "labels",
    )


def _queues(items: DataFrame) -> DataFrame:
    """Returns columns `account`, `queue` (name in lower case) and the settings of each queue."""
    is_queue = sf.col("item.pk.S").startswith("A#") & sf.col("item.sk.S").startswith("queue#")
    documents = items.where(is_queue).select(
        sf.from_json("item.document.S", QUEUE_DOCUMENT).alias("document")
    )
    settings = documents.select(
        "document.account",
        sf.lower("document.name").alias("queue"),
        (sf.col("document.attributes.rewind_seconds") * 1000).alias("rewind_ms"),
        "document.rewind_floor_ms",
        "document.purged_ms",
        sf.to_json("document.attributes.labels").alias("labels"),
    )
    return settings.groupBy("account", "queue").agg(
        *[sf.max(name).alias(name) for name in (*_SETTINGS, "labels")]
    )
