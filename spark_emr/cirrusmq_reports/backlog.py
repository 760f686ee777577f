"""The messages in the queues at one time: pure transforms from items to figures.

A message is one entry of a parcel's lists. At time T it is, if `v` > 0 (live):

| | |
| --- | --- |
| expired | `x` ≤ T, in any other state too: TTL has not removed it yet |
| active | `v` + `w` ≤ T |
| delayed | never received, `v` > T |
| inactive | otherwise: held by a receiver, or waiting for its retry |

*Kept* are the last three. Of the archive, entries with `v` = 0 are rewindable until the item's
`expires_at`. Dead are kept messages of a dead-letter queue; they are active or inactive too.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import count_where, refuse, whole
from cirrusmq_reports.names import UNKNOWN, holders

RECEIVE_RANGES = ((0, 0), (1, 1), (2, 2), (3, 5), (6, 10), (11, 100), (101, None))
"""Receive counts of a histogram's columns: from, to (both included)."""
SIZE_RANGES = (
    (0, 256), (257, 1_024), (1_025, 4_096), (4_097, 16_384), (16_385, 65_536), (65_537, None),
)  # fmt: skip
"""Bytes of a histogram's columns: from, to (both included)."""
PERCENTILES = (50, 95, 99)

_AGE_BITS = 3
"""Bits kept of an age after its highest one: eight buckets from one power of two to the next."""


def range_name(name: str, low: int, high: int | None) -> str:
    """Name of a histogram's column: `receives_3_5`, `size_65537_up`, `receives_1`."""
    if low == high:
        return f"{name}_{low}"
    return f"{name}_{low}_{'up' if high is None else high}"


RECEIVE_COLUMNS = tuple(range_name("receives", *bounds) for bounds in RECEIVE_RANGES)
SIZE_COLUMNS = tuple(range_name("size", *bounds) for bounds in SIZE_RANGES)
COUNTS = ("active", "inactive", "delayed", "rewindable", "dead", "expired", "bytes")
AGES = ("oldest_age_seconds", *(f"p{percent}_age_seconds" for percent in PERCENTILES))
FIGURES = (
    *COUNTS,
    *AGES,
    *RECEIVE_COLUMNS,
    *SIZE_COLUMNS,
    "hottest_partition",
    "hottest_partition_share",
    "retrying",
    "probe_age_seconds",
)


def backlog(items: DataFrame, names: DataFrame, at_ms: int) -> DataFrame:
    """Columns `account`, `kind`, `name`, `id` and FIGURES: one row a queue, receiver, subscription.

    `items` has the column `item` of the Messages table, `names` those of `resource_names`.
    """
    return named(figures(counts_by_age(messages(items), at_ms), at_ms), names)


def messages(items: DataFrame) -> DataFrame:
    """One row a message: `key` of its partition, `v`, `w`, `r`, `z`, and its parcel's times in ms.

    A retry schedule is a row without `v`, with `retrying` and `probe_sent_ms`: one reading serves
    both.
    """
    parcels = items.select("item.*").select(
        _key().alias("key"),
        sf.substring("pk.S", 1, 1).isin("Q", "R").alias("is_parcel"),
        (sf.substring("pk.S", 1, 1) == "R").alias("archived"),
        sf.col("d").isNotNull().alias("is_dead"),
        whole("t").alias("sent_ms"),
        whole("x").alias("expires_ms"),
        (whole("expires_at") * 1000).alias("kept_until_ms"),
        (sf.col("state.S") == "retrying").alias("retrying"),
        whole("probe_sent").alias("probe_sent_ms"),
        sf.col("v.L").alias("visible"),
        sf.col("w.L").alias("waits"),
        sf.col("r.L").alias("receives"),
        sf.col("z.L").alias("sizes"),
    )
    sound = parcels.where("key IS NOT NULL").where(refuse(sf.expr(_UNEQUAL_LISTS)))
    entries = sound.select("*", sf.posexplode_outer("visible").alias("place", "entry"))
    numbers = entries.select(
        "key",
        "place",
        "is_parcel",
        "archived",
        "is_dead",
        "sent_ms",
        "expires_ms",
        "kept_until_ms",
        "retrying",
        "probe_sent_ms",
        whole("entry").alias("v"),
        sf.when(sf.col("waits").isNull(), sf.lit(0)).otherwise(_entry("waits")).alias("w"),
        _entry("receives").alias("r"),
        _entry("sizes").alias("z"),
    )
    return numbers.where(refuse(sf.expr(_LACKING)))


_UNEQUAL_LISTS = (
    "is_parcel AND (visible IS NULL OR size(receives) != size(visible) "
    "OR size(sizes) != size(visible) OR (waits IS NOT NULL AND size(waits) != size(visible)))"
)
_LACKING = (
    # A parcel of no messages has one row, without a place: nothing to count, nothing lacking.
    "is_parcel AND ((v IS NULL OR w IS NULL OR r IS NULL OR z IS NULL) AND place IS NOT NULL "
    "OR sent_ms IS NULL OR expires_ms IS NULL OR kept_until_ms IS NULL) "
    "OR (retrying AND probe_sent_ms IS NULL)"
)


def counts_by_age(messages: DataFrame, at_ms: int) -> DataFrame:
    """Sums by `key` and `age`: whole seconds since sending, cut to their four highest bits.

    So a bucket is never wider than an eighth of its age. Messages not kept have no age. All
    columns but the key have a fixed width: with a text among them Spark sorts every message.
    """
    at = sf.lit(at_ms)
    # One decision a level: `live` needs `v`, `kept` needs `live`, and the rest need `kept`.
    states = messages.withColumn("live", (sf.col("v") > 0) & ~sf.col("archived"))
    states = states.withColumn("kept", sf.col("live") & (sf.col("expires_ms") > at))
    seconds = sf.floor((sf.greatest(at - sf.col("sent_ms"), sf.lit(0))) / 1000)
    states = states.withColumn("seconds", sf.when(sf.col("kept"), seconds))
    kept, visible = sf.col("kept"), sf.col("v")
    delayed = kept & (sf.col("r") == 0) & (visible > at)
    rewindable = sf.col("archived") & (visible == 0) & (sf.col("kept_until_ms") > at)
    return states.groupBy("key", _age_bucket().alias("age")).agg(
        count_where(kept).alias("kept"),
        count_where(kept & (visible + sf.col("w") <= at)).alias("active"),
        count_where(delayed).alias("delayed"),
        count_where(rewindable).alias("rewindable"),
        count_where(kept & sf.col("is_dead")).alias("dead"),
        count_where(sf.col("live") & ~kept).alias("expired"),
        sf.coalesce(sf.sum(sf.when(kept, sf.col("z"))), sf.lit(0)).alias("bytes"),
        sf.max("seconds").alias("oldest_age_seconds"),
        *_histogram("receives", "r", RECEIVE_RANGES),
        *_histogram("size", "z", SIZE_RANGES),
        sf.max("retrying").alias("retrying"),
        sf.max("probe_sent_ms").alias("probe_sent_ms"),
    )


def figures(counts: DataFrame, at_ms: int) -> DataFrame:
    """Columns `id` and FIGURES, from the columns of `counts_by_age`.

    Ages are gathered as lists of (`age`, `kept`): at most some hundred a partition, so that wide
    rows are not sorted by age for three numbers.
    """
    ages = sf.collect_list(sf.when(sf.col("kept") > 0, sf.struct("age", "kept")))
    by_partition = counts.groupBy("key").agg(*_sums(), ages.alias("ages"))
    parts = by_partition.select(
        "*",
        sf.substring_index(sf.substring_index("key", "#", 2), "#", -1).alias("id"),
        sf.struct("kept", (-_partition()).alias("place")).alias("heat"),
    )
    by_resource = parts.groupBy("id").agg(
        *_sums(),
        sf.array_sort(sf.flatten(sf.collect_list("ages"))).alias("ages"),
        sf.max(sf.when(sf.col("kept") > 0, sf.col("heat"))).alias("hottest"),
    )
    retrying = sf.coalesce("retrying", sf.lit(False))
    probe_age = sf.floor((sf.lit(at_ms) - sf.col("probe_sent_ms")) / 1000)
    derived = by_resource.withColumns(
        {
            "inactive": sf.col("kept") - sf.col("active") - sf.col("delayed"),
            **{f"p{percent}_age_seconds": _percentile(percent) for percent in PERCENTILES},
            "hottest_partition": -sf.col("hottest.place"),
            "hottest_partition_share": sf.round(sf.col("hottest.kept") / sf.col("kept"), 4),
            "retrying": retrying,
            "probe_age_seconds": sf.when(retrying, probe_age),
        }
    )
    return derived.select("id", *FIGURES)


def named(figures: DataFrame, names: DataFrame) -> DataFrame:
    """Columns `account`, `kind`, `name`, `id`, FIGURES.

    Named resources without items have zeros; items of resources without a name show their id.
    """
    rows = figures.join(holders(names), "id", "full")
    zero = (*COUNTS, *RECEIVE_COLUMNS, *SIZE_COLUMNS)
    return rows.select(
        sf.coalesce("account", sf.lit(UNKNOWN)).alias("account"),
        sf.coalesce("kind", sf.lit(UNKNOWN)).alias("kind"),
        sf.coalesce("name", "id").alias("name"),
        "id",
        *[
            sf.coalesce(name, sf.lit(False if name == "retrying" else 0)).alias(name)
            if name in zero or name == "retrying"
            else sf.col(name)
            for name in FIGURES
        ],
    )


def _key() -> Column:
    """The unit of counting: a partition of a resource, or a subscription's delivery state."""
    kind = sf.substring("pk.S", 1, 2)
    return sf.when(kind.isin("Q#", "R#"), sf.col("pk.S")).when(
        kind == "S#", sf.concat(sf.lit("S#"), sf.col("sk.S"))
    )


def _entry(name: str) -> Column:
    return sf.get(sf.col(name), sf.col("place"))["N"].try_cast("bigint")


def _age_bucket() -> Column:
    # Half a second more keeps the logarithm off the powers of two, which rounding would decide.
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


def _percentile(percent: int) -> Column:
    """The age that `percent` of a resource's kept messages do not exceed, in its bucket."""
    return sf.expr(
        f"""aggregate(ages, named_struct('seen', 0L, 'age', CAST(NULL AS BIGINT)),
            (sum, entry) -> IF(sum.age IS NOT NULL, sum, named_struct(
                'seen', sum.seen + entry.kept,
                'age', IF((sum.seen + entry.kept) * 100 >= kept * {percent}, entry.age, NULL)))
        ).age"""
    )


def _partition() -> Column:
    """The number at the end of a key; of a schedule's there is none."""
    number = sf.substring_index("key", "#", -1).try_cast("int")
    return sf.when(~sf.col("key").startswith("S#"), number)


def _sums() -> list[Column]:
    added = (*COUNTS, "kept", *RECEIVE_COLUMNS, *SIZE_COLUMNS)
    newest = ("oldest_age_seconds", "retrying", "probe_sent_ms")
    return [
        *[sf.sum(name).alias(name) for name in added if name != "inactive"],
        *[sf.max(name).alias(name) for name in newest],
    ]
