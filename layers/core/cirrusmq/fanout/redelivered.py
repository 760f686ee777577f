"""The parcel of a message that was delivered again by its id, for the trace: only the newest.

pk `D#<subscription id>#again`, sk the message's id: its parcel's key. TTL removes it with that.
"""

from __future__ import annotations

from typing import Any

from cirrusmq.model.parcel import Parcel
from cirrusmq.model.topic import Subscription
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import key
from cirrusmq.storage.parcels import PARCELS, partition_key, ttl_seconds
from cirrusmq.subscriptions.delivery.due_marks import KIND


def put_redelivered(core: Core, subscription_id: str, parcel: Parcel) -> dict[str, Any]:
    """Returns the write, of a transaction, that records the present parcel of a message."""
    item = {
        **key(_pk(subscription_id), parcel.message_id(0)),
        "p": {"S": partition_key(PARCELS, parcel.source_id, parcel.partition)},
        "k": {"S": parcel.sort_key},
        "expires_at": {"N": str(ttl_seconds(parcel.expires_ms))},
    }
    return {"Put": {"TableName": core.tables.messages, "Item": item}}


def redelivered_to(
    core: Core, subscription: Subscription, message_id: str
) -> tuple[str, str] | None:
    """The key of the message's parcel since it was delivered again; half a read unit.

    None if it never was, or the group was rewound since.
    """
    item = core.store.get(core.tables.messages, _pk(subscription.id), message_id, consistent=False)
    if item is None or core.now_ms() >= int(item["expires_at"]["N"]) * 1_000:
        return None
    pk = item["p"]["S"]
    if pk.split("#")[1] != subscription.present_id:
        return None
    return pk, item["k"]["S"]


def _pk(subscription_id: str) -> str:
    return f"{KIND}#{subscription_id}#again"
