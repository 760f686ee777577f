"""The keys of the tables, as far as reports read them: this is the one place that does.

Of the Messages table, the backlog is made of

| pk | sk | |
| --- | --- | --- |
| `Q#<resource>#<partition>` | not read | a parcel |
| `R#<resource>#<partition>` | not read | an archived parcel |
| `S#<shard>` | `<subscription>` | a subscription's delivery state |

All other items of the table are passed over, whatever attributes they have. The kinds of items are
listed here nevertheless: an item of a kind that is in no list was written by a newer version, and
the reports say how many they have left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as sf

KINDS: Mapping[str, frozenset[str]] = {
    "Messages": frozenset(["A", "D", "F", "H", "L", "M", "N", "P", "Q", "R", "S", "T", "W"]),
    "Usage": frozenset(["C", "T", "U", "V", "gauges", "sweep"]),
    "Directory": frozenset(["A", "E", "G", "I", "K", "Q", "T", "deployment"]),
}
"""Table → the first parts of its items' pk, up to the first `#`."""

PARCEL, ARCHIVED, STATE = "Q#", "R#", "S#"
IS_PARCEL = f"substring(item.pk.S, 1, 2) IN ('{PARCEL}', '{ARCHIVED}')"
"""SQL on a column `item`."""
IS_STATE = f"substring(item.pk.S, 1, 2) = '{STATE}'"
"""SQL on a column `item`."""
_KEY = r"([QR]#[^#]+#[0-9]+|S#.+)\\z"
WELL_FORMED = f"key RLIKE '^{_KEY}'"
"""SQL on a column `key` that `counting_key` made."""
MALFORMED_PARCEL = rf"{IS_PARCEL} AND NOT item.pk.S RLIKE '^[QR]#[^#]+#[0-9]+\\z'"


def kind_of_item() -> Column:
    """The item's kind, of a column `item`."""
    return sf.substring_index("item.pk.S", "#", 1)


def kinds_of_other_tables(table: str) -> list[str]:
    """The kinds that only other tables have: such an item shows that the export is of another."""
    others = set().union(*(kinds for name, kinds in KINDS.items() if name != table))
    return sorted(others - KINDS[table])


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
