"""The account, kind and name of each resource: from the Directory table."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.schemas import DOCUMENT


def resource_names(items: DataFrame) -> DataFrame:
    """Column `item` of Directory → columns `id`, `account`, `kind`, `name`; one row an id."""
    documents = items.where(sf.col("item.pk.S").startswith("I#")).select(
        sf.col("item.sk.S").alias("id"),
        sf.from_json("item.document.S", DOCUMENT).alias("document"),
    )
    # A record that is twice in the export must not double the resource's messages.
    once = documents.groupBy("id").agg(sf.max("document").alias("document"))
    return once.select("id", "document.*")
