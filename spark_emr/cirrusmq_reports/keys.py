"""The keys of the tables that reports read; no other module parses keys.

The backlog is made from these items of the Messages table:

| pk | sk | |
| --- | --- | --- |
| `Q#<resource>#<partition>` | not read | a parcel |
| `R#<resource>#<partition>` | not read | an archived parcel |
| `S#<shard>` | `<subscription>` | a subscription's delivery state |

All other items of the table are ignored, whatever attributes they have. Their kinds are listed here
nevertheless: an item of an unlisted kind was written by a newer version, and the reports show how
many such items they have left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as sf

KINDS: Mapping[str, frozenset[str]] = {
    "Messages": frozenset("ADFHLMNPQRSTWXY"),
    "Usage": frozenset(["C", "T", "U", "V", "gauges", "sweep"]),
    "Directory": frozenset(["A", "D", "E", "G", "I", "K", "Q", "T", "deployment"]),
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
    """Returns the item's kind, from a column `item`."""
    return sf.substring_index("item.pk.S", "#", 1)


def kinds_of_other_tables(table: str) -> list[str]:
    """Returns kinds that only other tables have: such an item shows a wrong table's export."""
    others = set().union(*(kinds for name, kinds in KINDS.items() if name != table))
    return sorted(others - KINDS[table])


def counting_key() -> Column:
    """Returns the unit of counting: a partition of a resource, or a subscription's delivery state.

    Made from columns `pk` and `sk`; null for items without messages.
    """
    kind = sf.substring("pk.S", 1, 2)
    return sf.when(kind.isin(PARCEL, ARCHIVED), sf.col("pk.S")).when(
        kind == STATE, sf.concat(sf.lit(STATE), sf.col("sk.S"))
    )


def resource_of_key() -> Column:
    """Returns the id of the resource, from a column `key`."""
    return sf.substring_index(sf.substring_index("key", "#", 2), "#", -1)


def partition_of_key() -> Column:
    """Returns the number of the partition, from a column `key`; null for a delivery state."""
    number = sf.substring_index("key", "#", -1).try_cast("int")
    return sf.when(~sf.col("key").startswith(STATE), number)
