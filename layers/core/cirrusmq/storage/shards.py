"""Items that are all read together: spread over a few partition keys, so that none is hot."""

from __future__ import annotations

import zlib

SHARDS = 16


def shard_key(kind: str, name: str, shards: int = SHARDS) -> str:
    """Returns the partition key of the item with this name."""
    return f"{kind}#{zlib.crc32(name.encode()) % shards}"


def shard_keys(kind: str, shards: int = SHARDS) -> list[str]:
    """Returns all partition keys of a kind."""
    return [f"{kind}#{shard}" for shard in range(shards)]
