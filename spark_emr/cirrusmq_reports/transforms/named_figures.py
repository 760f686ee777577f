"""The figures of each queue, receiver and subscription, with its account, kind and name."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.figures import (
    COUNTS,
    FIGURES,
    REASON_COLUMNS,
    RECEIVE_COLUMNS,
    SIZE_COLUMNS,
)

UNKNOWN = "(unknown)"
"""Account and kind of resources that the directory does not name; no account has this name."""

NO_LABELS = "{}"


def named_figures(figures: DataFrame, names: DataFrame) -> DataFrame:
    """Returns columns `account`, `kind`, `name`, `id`, `labels`, `ages`, FIGURES.

    Named resources without items have zeros; items of resources without a name show their id.
    Deleted resources are left out, also if some of their messages are not removed yet.
    """
    rows = figures.join(_holders(names), "id", "full").where("deleted IS NULL OR NOT deleted")
    zero = (*COUNTS, *REASON_COLUMNS, *RECEIVE_COLUMNS, *SIZE_COLUMNS)
    return rows.select(
        sf.coalesce("account", sf.lit(UNKNOWN)).alias("account"),
        sf.coalesce("kind", sf.lit(UNKNOWN)).alias("kind"),
        sf.coalesce("name", "id").alias("name"),
        "id",
        sf.coalesce("labels", sf.lit(NO_LABELS)).alias("labels"),
        "ages",
        *[
            sf.coalesce(name, sf.lit(False if name == "retrying" else 0)).alias(name)
            if name in zero or name == "retrying"
            else sf.col(name)
            for name in FIGURES
        ],
    )


def _holders(names: DataFrame) -> DataFrame:
    """Returns the resources that hold messages: all except topics."""
    return names.where(sf.col("kind") != "topic")
