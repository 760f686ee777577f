"""Whose a resource is, and what it is called: from the Directory table."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.schemas import DOCUMENT

UNKNOWN = "(unknown)"
"""Account and kind of what the directory does not name; no account can be called that."""


def resource_names(items: DataFrame) -> DataFrame:
    """Column `item` of Directory → columns `id`, `account`, `kind`, `name`; one row an id."""
    documents = items.where(sf.col("item.pk.S").startswith("I#")).select(
        sf.col("item.sk.S").alias("id"),
        sf.from_json("item.document.S", DOCUMENT).alias("document"),
    )
    # A record that stands twice in the export must not double what stands in the resource.
    once = documents.groupBy("id").agg(sf.max("document").alias("document"))
    return once.select("id", "document.*")


def holders(names: DataFrame) -> DataFrame:
    """Those of the resources that messages stand in: all but topics."""
    return names.where(sf.col("kind") != "topic")
