"""Sequence numbers of ordered queues: an atomic counter in each partition."""

from __future__ import annotations

from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import key


def take_sequence(core: Core, queue_id: str, partition: int, count: int) -> int:
    """Returns the first of `count` new numbers; higher than every number returned before."""
    answer = core.store.write(
        "UpdateItem",
        {
            "TableName": core.tables.messages,
            "Key": key(f"N#{queue_id}#{partition}", "N"),
            "UpdateExpression": "ADD n :count",
            "ExpressionAttributeValues": {":count": {"N": str(count)}},
            "ReturnValues": "UPDATED_NEW",
        },
    )
    assert answer is not None
    return int(answer["n"]["N"]) - count + 1
