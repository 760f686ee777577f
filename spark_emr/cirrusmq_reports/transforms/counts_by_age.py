"""Counts of messages in each state, by partition and age.

A message is one entry of a parcel's lists. At time T it is, if `v` > 0 (live):

| | |
| --- | --- |
| expired | `x` ≤ T, in any other state too: TTL has not removed it yet |
| active | `v` + `w` ≤ T |
| delayed | never received, `v` > T |
| inactive | otherwise: held by a receiver, or waiting for its retry |

The last three are *kept*. Entries with `v` = 0 are rewindable until `rewind_until_ms`. *Dead* are
the kept messages of a dead-letter queue; they are active or inactive, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import count_where
from cirrusmq_reports.figures import REASON_COLUMNS, RECEIVE_RANGES, SIZE_RANGES, range_name

_AGE_BITS = 3
"""Kept bits of an age after its highest one: eight buckets between two powers of two."""


def counts_by_age(messages: DataFrame, at_ms: int) -> DataFrame:
    """Returns sums by `key` and `age`: whole seconds since sending, cut to the four highest bits.

    So a bucket is never wider than an eighth of its age. Messages not kept have no age. All
    columns but the key have a fixed width: with a text among them Spark sorts every message.
    """
    at = sf.lit(at_ms)
    # One decision for each level: `live` needs `v`, `kept` needs `live`, the rest need `kept`.
    states = messages.withColumn("live", (sf.col("v") > 0) & ~sf.col("archived"))
    states = states.withColumn("kept", sf.col("live") & (sf.col("expires_ms") > at))
    seconds = sf.floor((sf.greatest(at - sf.col("sent_ms"), sf.lit(0))) / 1000)
    states = states.withColumn("seconds", sf.when(sf.col("kept"), seconds))
    kept, visible = sf.col("kept"), sf.col("v")
    delayed = kept & (sf.col("r") == 0) & (visible > at)
    rewindable = (visible == 0) & (sf.col("rewind_until_ms") > at)
    return states.groupBy("key", _age_bucket().alias("age")).agg(
        count_where(kept).alias("kept"),
        count_where(kept & (visible + sf.col("w") <= at)).alias("active"),
        count_where(delayed).alias("delayed"),
        count_where(rewindable).alias("rewindable"),
        count_where(kept & sf.col("reason").isNotNull()).alias("dead"),
        *[
            count_where(kept & (sf.col("reason") == place)).alias(name)
            for place, name in enumerate(REASON_COLUMNS)
        ],
        count_where(sf.col("live") & ~kept).alias("expired"),
        sf.coalesce(sf.sum(sf.when(kept, sf.col("z"))), sf.lit(0)).alias("bytes"),
        sf.max("seconds").alias("oldest_age_seconds"),
        *_histogram("receives", "r", RECEIVE_RANGES),
        *_histogram("size", "z", SIZE_RANGES),
        sf.max("retrying").alias("retrying"),
        sf.max("probe_sent_ms").alias("probe_sent_ms"),
    )


def _age_bucket() -> Column:
    # Half a second more avoids logarithms of exact powers of two, which depend on rounding.
    return sf.expr(
        f"""seconds - seconds % shiftleft(1L,
            greatest(CAST(floor(log2(seconds + 0.5D)) AS INT) - {_AGE_BITS}, 0))"""
    )


def _histogram(name: str, column: str, ranges: Sequence[tuple[int, int | None]]) -> list[Column]:
    value = sf.col(column)
    counts = []
    for low, high in ranges:
        inside = value >= low if high is None else value.between(low, high)
        counts.append(count_where(sf.col("kept") & inside).alias(range_name(name, low, high)))
    return counts
