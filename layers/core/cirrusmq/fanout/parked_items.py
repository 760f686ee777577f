"""Items of parked shares: the shares themselves, and a lot for each reader that has some.

| pk | sk | item |
| --- | --- | --- |
| `P#<reader id>#<shard>` | `<place in the stream>#<record's sk>` | a share: `log`, `of`, `c` |
| `P#<0-15>` | `<reader id>` | the reader's lot: `t`, when it was marked, and its lease |

Shares in order have one key (shard `o`), in the order of the stream. The records' own keys would
not do: their times are of the publishers' clocks, which differ. The rest is spread over 16, since
thousands a second may be parked. `log` and `of` are the record's key, `c` is when the log took it.
"""

from __future__ import annotations

from cirrusmq.runtime.store import Item, key, shard_key, shard_keys

UNKNOWN_PLACE = "0" * 40
"""The place of a record that no stream brings."""


def parked_item(
    reader_id: str, record: Item, place: str = UNKNOWN_PLACE, came_ms: int = 0, *, in_order: bool
) -> Item:
    """Returns the item of a reader's share of a record; of all readers' if the id is the log's."""
    log, of = record["pk"]["S"], record["sk"]["S"]
    sk = f"{place}#{of}"
    pk = in_order_key(reader_id) if in_order else shard_key(f"P#{reader_id}", sk)
    return {
        **key(pk, sk),
        "log": {"S": log},
        "of": {"S": of},
        "c": {"N": str(came_ms)},
        "expires_at": record["expires_at"],
    }


def parked_keys(reader_id: str) -> list[str]:
    """The partition keys of a reader's shares."""
    return [in_order_key(reader_id), *shard_keys(f"P#{reader_id}")]


def in_order_key(reader_id: str) -> str:
    """The partition key of the shares of a reader that is promised an order."""
    return f"P#{reader_id}#o"


def lot_keys() -> list[str]:
    """The partition keys of all lots."""
    return shard_keys("P")


def lot_key(reader_id: str) -> tuple[str, str]:
    """The key of a reader's lot."""
    return shard_key("P", reader_id), reader_id
