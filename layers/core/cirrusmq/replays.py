"""Running operations: going on where the last runner saved, until done or out of time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from cirrusmq import backfilling, operations, purging, redriving, rewinding
from cirrusmq.core import Core
from cirrusmq.errors import CirrusMQError, OperationNotFound, QueueNotFound, Unavailable
from cirrusmq.operations import HOLD_MS, Operation, Pointer, Step
from cirrusmq.queue import Queue
from cirrusmq.queues import get_queue

_STEPS: dict[str, Callable[[Core, Queue, Operation], Iterator[Step]]] = {
    "purge": purging.steps,
    "rewind": rewinding.steps,
    "redrive": redriving.steps,
    "backfill": backfilling.steps,
}


def run(core: Core, pointer: Pointer, most_ms: int) -> None:
    """Go on with an operation for about `most_ms`; what is left then is started anew.

    Where the store fails the operation stays as last saved, and the sweep starts it again.
    """
    found = operations.hold(core, pointer.account, pointer.id)
    if found is None:
        return
    if any(_before(other, found.value) for other in _other_rewinds(core, found.value)):
        operations.save(core, found, held_until_ms=0)
        return
    deadline_ms = core.now_ms() + most_ms
    try:
        queue = get_queue(core, pointer.account, found.value.queue)
        if queue.id != found.value.queue_id:
            raise QueueNotFound
        for step in _STEPS[found.value.kind](core, queue, found.value):
            saved = operations.save(
                core,
                found,
                progress=step.progress,
                done=found.value.done + step.done,
                detail=step.detail,
                notes=step.notes,
                held_until_ms=core.now_ms() + HOLD_MS,
            )
            if saved is None:
                return  # another runner took over
            found = saved
            if core.now_ms() >= deadline_ms:
                operations.save(core, found, held_until_ms=0)
                operations.resume(core, pointer)
                return
    except Unavailable:
        operations.save(core, found, held_until_ms=0)
        return
    except CirrusMQError as error:
        operations.finish(core, found, "failed", error.detail)
        return
    operations.finish(core, found, "succeeded", found.value.detail)
    for other in _other_rewinds(core, found.value):
        operations.resume(core, Pointer(other.account, other.id))


def _other_rewinds(core: Core, operation: Operation) -> Iterator[Operation]:
    """Running rewinds of a rewind's queue. They run one after the other:

    1: ─────────────────────── takes a parcel out of the archive ──
    2: reads what is live (not there) ──────────────────────────── reads the archive (not there)
    """
    if operation.kind != "rewind":
        return
    for pointer in operations.running(core):
        with contextlib.suppress(OperationNotFound):
            other = operations.get(core, pointer.account, pointer.id)
            same = (other.kind, other.queue_id) == (operation.kind, operation.queue_id)
            if same and other.id != operation.id and other.state == "running":
                yield other


def _before(operation: Operation, other: Operation) -> bool:
    return (operation.started_ms, operation.id) < (other.started_ms, other.id)
