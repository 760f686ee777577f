"""The secret of a deployment: made once, at its first use, in the encrypted directory."""

from __future__ import annotations

from collections.abc import Callable

from cirrusmq.runtime.store import ConditionFailed, Store, key
from cirrusmq.storage.directory_keys import DEPLOYMENT

SECRET_BYTES = 32


def load_secret(store: Store, table: str, random_bytes: Callable[[int], bytes]) -> bytes:
    """The deployment's 32 secret bytes, the same for every function and for all time."""
    item = store.get(table, *DEPLOYMENT)
    if item is None:
        item = {**key(*DEPLOYMENT), "document": {"S": random_bytes(SECRET_BYTES).hex()}}
        try:
            store.put_if_absent(table, item)
        except ConditionFailed as failed:
            assert failed.item is not None
            item = failed.item
    return bytes.fromhex(item["document"]["S"])
