"""The definition of a table, given when the engine is opened."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table: its key, its expiry, its stream and its exports.

    Key types are `S`, `N` or `B`. `ttl_attribute` holds epoch seconds. A table with a stream
    shows its changes to readers; a table with point-in-time recovery keeps a day of changes for
    incremental exports.
    """

    name: str
    partition_key: str = "pk"
    sort_key: str | None = "sk"
    ttl_attribute: str | None = "expires_at"
    stream: bool = False
    partition_key_type: str = "S"
    sort_key_type: str = "S"
    point_in_time_recovery: bool = True

    @property
    def key_types(self) -> dict[str, str]:
        """Key attributes and their types, partition key first."""
        types = {self.partition_key: self.partition_key_type}
        if self.sort_key is not None:
            types[self.sort_key] = self.sort_key_type
        return types

    @property
    def arn(self) -> str:
        """Name of the table in records and manifests."""
        return f"arn:aws:dynamodb:local:000000000000:table/{self.name}"
