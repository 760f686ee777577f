"""The figures of all resources that have a label, by account, label and value."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.figures import AGES, COUNTS, PERCENTILES, REASON_COLUMNS
from cirrusmq_reports.transforms.figures_by_resource import percentile

TIMES = ("at_ms", "at", "day")
LABEL_FIGURES = ("resources", *COUNTS, *AGES, *REASON_COLUMNS)


def figures_by_label(figures: DataFrame) -> DataFrame:
    """Returns columns `account`, `label`, `value`, LABEL_FIGURES and TIMES.

    figures: columns of `named_figures` and TIMES. `resources`: number of resources with the label.
    Percentiles are over all their messages. A resource with three labels is in three rows.
    """
    labels = sf.from_json("labels", "MAP<STRING,STRING>")
    labelled = figures.select("*", sf.explode(labels).alias("label", "value"))
    summed = labelled.groupBy("account", "label", "value", *TIMES).agg(
        sf.count(sf.lit(1)).alias("resources"),
        *[sf.sum(name).alias(name) for name in (*COUNTS, *REASON_COLUMNS)],
        sf.max("oldest_age_seconds").alias("oldest_age_seconds"),
        sf.array_sort(sf.flatten(sf.collect_list("ages"))).alias("ages"),
    )
    kept = sf.col("active") + sf.col("inactive") + sf.col("delayed")
    derived = summed.withColumn("kept", kept).withColumns(
        {f"p{percent}_age_seconds": percentile(percent) for percent in PERCENTILES}
    )
    return derived.select("account", "label", "value", *LABEL_FIGURES, *TIMES)
