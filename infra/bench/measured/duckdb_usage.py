"""The hourly usage of exports as one query of DuckDB over the same data files."""

from __future__ import annotations

from collections.abc import Sequence

_TEXT, _NUMBER = "STRUCT(S VARCHAR)", "STRUCT(N VARCHAR)"
_ENTRY = (
    f"STRUCT(account {_TEXT}, resource {_TEXT}, kind {_TEXT}, minute {_NUMBER}, "
    f'"count" {_NUMBER}, bytes {_NUMBER})'
)
_SUMS = "sum({}::BIGINT)::BIGINT AS messages, sum({}::BIGINT)::BIGINT AS size"
_NOT_NOTHING = "messages <> 0 OR size <> 0"
_ITEM = f"STRUCT(pk {_TEXT}, sk {_TEXT}, records STRUCT(L STRUCT(M {_ENTRY})[]))"


def usage_query(whole: Sequence[str], windows: Sequence[str]) -> str:
    """Returns a query with sums of messages and bytes by account, resource, kind and hour (epoch).

    `whole`, `windows`: the data files of exports. A record counts once, also if several exports
    have it.
    """
    shown = [
        f"SELECT {image} AS item FROM read_json({list(found)}, format = 'newline_delimited', "
        f"columns = {{{image}: '{_ITEM}'}})"
        for image, found in (("Item", whole), ("NewImage", windows))
        if found
    ]
    return f"""
    WITH shown AS ({" UNION ALL ".join(shown)}),
    records AS (
        SELECT any_value(item.records.L) AS entries
        FROM shown WHERE item.pk.S[1:2] = 'U#' GROUP BY item.pk.S, item.sk.S),
    entries AS (SELECT unnest(entries).M AS entry FROM records)
    SELECT entry.account.S AS account, entry.resource.S AS resource, entry.kind.S AS kind,
        entry.minute.N::BIGINT // 60 AS hour, {_SUMS.format("entry.count.N", "entry.bytes.N")}
    FROM entries GROUP BY ALL HAVING {_NOT_NOTHING} ORDER BY ALL"""


def kept_query(output: str) -> str:
    """Returns a query of the same rows over the table that runs of billing keep in this folder."""
    return f"""
    SELECT account, resource, kind, (epoch(hour) // 3600)::BIGINT AS hour,
        {_SUMS.format("count", "bytes")}
    FROM read_parquet('{output}/tables/usage/*/*/*.parquet', hive_partitioning = false)
    WHERE kind <> 'attempted' GROUP BY ALL HAVING {_NOT_NOTHING} ORDER BY ALL"""
