"""The keys of the Messages table, as far as reports read them: this is the one place that does.

| pk | sk | |
| --- | --- | --- |
| `Q#<resource>#<partition>` | not read | a parcel |
| `R#<resource>#<partition>` | not read | an archived parcel |
| `S#<shard>` | `<subscription>` | a subscription's delivery state |
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

PARCEL, ARCHIVED, STATE = "Q#", "R#", "S#"
IS_PARCEL = f"substring(item.pk.S, 1, 2) IN ('{PARCEL}', '{ARCHIVED}')"
"""SQL on a column `item`."""
_KEY = r"([QR]#[^#]+#[0-9]+|S#.+)\\z"
WELL_FORMED = f"key RLIKE '^{_KEY}'"
"""SQL on a column `key` that `counting_key` made."""
MALFORMED_PARCEL = rf"{IS_PARCEL} AND NOT item.pk.S RLIKE '^[QR]#[^#]+#[0-9]+\\z'"


def counting_key() -> Column:
    """The unit of counting: a partition of a resource, or a subscription's delivery state.

    Of columns `pk` and `sk`; null for items that hold no messages.
    """
    kind = sf.substring("pk.S", 1, 2)
    return sf.when(kind.isin(PARCEL, ARCHIVED), sf.col("pk.S")).when(
        kind == STATE, sf.concat(sf.lit(STATE), sf.col("sk.S"))
    )


def resource_of_key() -> Column:
    """The id of the resource, of a column `key`."""
    return sf.substring_index(sf.substring_index("key", "#", 2), "#", -1)


def partition_of_key() -> Column:
    """The number of the partition, of a column `key`; of a delivery state there is none."""
    number = sf.substring_index("key", "#", -1).try_cast("int")
    return sf.when(~sf.col("key").startswith(STATE), number)
