"""The backlog job's aggregation as one query of DuckDB over the same data files."""

from __future__ import annotations

from collections.abc import Sequence

from cirrusmq_reports.figures import (
    AGES,
    COUNTS,
    PERCENTILES,
    RECEIVE_COLUMNS,
    RECEIVE_RANGES,
    SIZE_COLUMNS,
    SIZE_RANGES,
    range_name,
)

FIGURES = (
    *COUNTS,
    *AGES,
    *RECEIVE_COLUMNS,
    *SIZE_COLUMNS,
    "hottest_partition",
    "hottest_partition_share",
)
"""The columns of a row after the resource's id, in this order."""

_SUMS = (*(name for name in COUNTS if name != "inactive"), "kept", *RECEIVE_COLUMNS, *SIZE_COLUMNS)
_NUMBERS = "STRUCT(L STRUCT(N VARCHAR)[])"
_ITEM = (
    f"STRUCT(pk STRUCT(S VARCHAR), v {_NUMBERS}, w {_NUMBERS}, r {_NUMBERS}, z {_NUMBERS}, "
    "t STRUCT(N VARCHAR), x STRUCT(N VARCHAR), d STRUCT(B VARCHAR), expires_at STRUCT(N VARCHAR))"
)


def backlog_query(files: Sequence[str], at_ms: int) -> str:
    """Returns a query with a row for each resource: its id and FIGURES."""
    histograms = [
        f"count_if(kept AND {value} BETWEEN {low} AND {2**60 if high is None else high}) "
        f"AS {range_name(name, low, high)}"
        for name, value, ranges in (("receives", "r", RECEIVE_RANGES), ("size", "z", SIZE_RANGES))
        for low, high in ranges
    ]
    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in _SUMS)
    percentiles = ", ".join(
        f"min(bucket) FILTER (up_to_age * 100 >= total * {percent}) AS p{percent}_age_seconds"
        for percent in PERCENTILES
    )
    return f"""
    WITH parcels AS (
        SELECT Item.pk.S AS pk, Item.v.L AS v, Item.w.L AS w, Item.r.L AS r, Item.z.L AS z,
            Item.t.N::BIGINT AS t, Item.x.N::BIGINT AS x, Item.d IS NOT NULL AS dead,
            Item.expires_at.N::BIGINT AS until
        FROM read_json({list(files)}, format = 'newline_delimited', columns = {{Item: '{_ITEM}'}})
        WHERE Item.pk.S[1:2] IN ('Q#', 'R#')),
    messages AS (
        SELECT pk, t, x, dead, until, unnest(v).N::BIGINT AS v,
            coalesce(unnest(w).N, '0')::BIGINT AS w, unnest(r).N::BIGINT AS r,
            unnest(z).N::BIGINT AS z
        FROM parcels),
    states AS (
        SELECT *, ({at_ms} - t) // 1000 AS age, pk[1] = 'R' AS archived,
            v > 0 AND pk[1] = 'Q' AND x > {at_ms} AS kept
        FROM messages),
    counts AS (
        SELECT pk,
            CASE WHEN kept THEN
                age - age % (1 << greatest(floor(log2(age + 0.5))::BIGINT - 3, 0))
            END AS bucket,
            count_if(kept) AS kept, count_if(kept AND v + w <= {at_ms}) AS active,
            count_if(kept AND r = 0 AND v > {at_ms}) AS delayed,
            count_if(archived AND v = 0 AND until * 1000 > {at_ms}) AS rewindable,
            count_if(kept AND dead) AS dead,
            count_if(v > 0 AND NOT archived AND NOT kept) AS expired,
            coalesce(sum(z) FILTER (kept), 0) AS bytes, max(age) FILTER (kept) AS oldest,
            {", ".join(histograms)}
        FROM states GROUP BY ALL),
    partitions AS (
        SELECT split_part(pk, '#', 2) AS id, split_part(pk, '#', 3)::INT AS place, {sums},
            max(oldest) AS oldest
        FROM counts GROUP BY pk),
    resources AS (
        SELECT id, {sums}, max(oldest) AS oldest_age_seconds,
            arg_max(place, (kept, -place)) FILTER (kept > 0) AS hottest_partition,
            max(kept) AS hottest
        FROM partitions GROUP BY id),
    ages AS (
        SELECT split_part(pk, '#', 2) AS id, bucket, kept FROM counts WHERE kept > 0),
    sums_of_ages AS (
        SELECT id, bucket, sum(kept) OVER (PARTITION BY id) AS total,
            sum(kept) OVER (PARTITION BY id ORDER BY bucket) AS up_to_age
        FROM ages),
    percentiles AS (SELECT id, {percentiles} FROM sums_of_ages GROUP BY id),
    derived AS (
        SELECT *, kept - active - delayed AS inactive,
            round(hottest / nullif(kept, 0), 4) AS hottest_partition_share
        FROM resources LEFT JOIN percentiles USING (id))
    SELECT id, {", ".join(FIGURES)} FROM derived
    """
