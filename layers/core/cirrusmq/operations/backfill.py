"""Giving a new receiver the messages sent before it was created."""

from __future__ import annotations

from collections.abc import Iterator

from cirrusmq.base.errors import ReceiverNotFound
from cirrusmq.base.limits import KEY_SLACK_MS
from cirrusmq.fanout.records import deliver_record
from cirrusmq.queues.operations import Run, Step
from cirrusmq.queues.receivers import list_receivers
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import key
from cirrusmq.storage.parcels import LOG, page_request, partition_key
from cirrusmq.storage.scan import LAST_KEY, Progress, remaining


def steps(core: Core, run: Run) -> Iterator[Step]:
    """Make the receiver's parcels from the log; those that fan_out has made stay as they are."""
    operation, queue = run.operation, run.queue()
    name, until_ms = operation.details["receiver"], operation.details["until_ms"]
    receiver = next((r for r in list_receivers(core, queue) if r.name == name), None)
    if receiver is None:
        raise ReceiverNotFound
    partitions = [partition_key(LOG, queue.id, n) for n in range(queue.attributes.partitions)]
    for pk, behind in remaining(partitions, operation.progress):
        # A record's key has the time of its attempt, which may be before its sending.
        first = f"{receiver.start_ms - KEY_SLACK_MS:013d}"
        after: str | None = behind or first
        while after is not None:
            request = page_request(core.tables.messages, pk, after, LAST_KEY, None, consistent=True)
            if after != first:
                request["ExclusiveStartKey"] = key(pk, after)
            items, last, _ = core.store.query(request)
            # Later ones are fan_out's alone: those that the receiver has consumed stay consumed.
            earlier = [item for item in items if int(item["t"]["N"]) <= until_ms]
            done = sum(deliver_record(core, item, [receiver]) for item in earlier)
            after = last["sk"]["S"] if last else None
            yield Step(Progress(pk, after or "~"), done)
