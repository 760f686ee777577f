"""Whose a resource is, and what it is called: from the Directory table."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

UNKNOWN = "(unknown)"
"""Account and kind of what the directory does not name; no account can be called that."""

_DOCUMENT = "account STRING, kind STRING, name STRING"


def resource_names(items: DataFrame) -> DataFrame:
    """Column `item` of Directory → columns `id`, `account`, `kind`, `name`."""
    documents = items.where(sf.col("item.pk.S").startswith("I#")).select(
        sf.col("item.sk.S").alias("id"),
        sf.from_json("item.document.S", _DOCUMENT).alias("document"),
    )
    return documents.select("id", "document.*")


def holders(names: DataFrame) -> DataFrame:
    """Those of the resources that messages stand in: all but topics."""
    return names.where(sf.col("kind") != "topic")
