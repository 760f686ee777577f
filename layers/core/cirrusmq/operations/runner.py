"""Running operations: each run continues where the last one saved, until done or out of time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from cirrusmq.base.errors import CirrusMQError, OperationNotFound, Unavailable
from cirrusmq.operations import backfill, fan_out_again, purge, redrive, replay, rewind
from cirrusmq.queues import operations
from cirrusmq.queues.operations import HOLD_MS, Operation, Pointer, Run, Step
from cirrusmq.runtime.core import Core

HOPS = 64
"""Runs in a row of which each starts the next; after them the sweep starts one."""
_STEPS: dict[str, Callable[[Core, Run], Iterator[Step]]] = {
    "purge": purge.steps,
    "rewind": rewind.steps,
    "redrive": redrive.steps,
    "backfill": backfill.steps,
    "fan_out": fan_out_again.steps,
    "replay": replay.steps,
}


def run(core: Core, pointer: Pointer, max_ms: int, hops: int = 0) -> None:
    """Runs an operation for about `max_ms`; a new run is started for the rest.

    Each run has saved a step before it starts the next, and `hops` of them led to this one. If the
    store fails the operation stays as last saved, and the sweep starts it again.
    """
    found = operations.hold(core, pointer.account, pointer.id)
    if found is None:
        return
    if any(_before(other, found.value) for other in _apart(core, found.value)):
        operations.save(core, found, held_until_ms=0)
        return
    running = Run(core, found)
    deadline_ms = core.now_ms() + max_ms
    try:
        for step in _STEPS[found.value.kind](core, running):
            saved = running.save(
                progress=step.progress,
                done=running.operation.done + step.done,
                detail=step.detail,
                notes=step.notes,
                held_until_ms=core.now_ms() + HOLD_MS,
            )
            if not saved:
                return  # another runner took over
            if core.now_ms() >= deadline_ms:
                running.save(held_until_ms=0)
                _go_on(core, pointer, hops)
                return
    except Unavailable:
        running.save(held_until_ms=0)
        return
    except CirrusMQError as error:
        operations.finish(core, running.found, "failed", error.detail)
        return
    operations.finish(core, running.found, "succeeded", running.operation.detail)
    for other in _apart(core, running.operation):
        _go_on(core, Pointer(other.account, other.id), hops)


def _go_on(core: Core, pointer: Pointer, hops: int) -> None:
    if hops < HOPS:
        operations.resume(core, pointer, hops + 1)


def _apart(core: Core, operation: Operation) -> Iterator[Operation]:
    """Yields running operations on the same queue that must not run at the same time.

    1: ─────────────────────── takes a parcel out of the archive ──
    2: reads live parcels (not there) ──────────────────────────── reads the archive (not there)

    1 is a rewind; 2 is another one, or gives a new receiver the queue's backlog.
    """
    if not (operation.kind == "rewind" or _reads_backlog(operation)):
        return
    for pointer in operations.running(core):
        with contextlib.suppress(OperationNotFound):
            other = operations.get(core, pointer.account, pointer.id)
            if other.queue_id != operation.queue_id or other.id == operation.id:
                continue
            first, second = sorted((operation, other), key=lambda each: each.kind != "rewind")
            apart = first.kind == "rewind" and (second.kind == "rewind" or _reads_backlog(second))
            if apart and other.state == "running":
                yield other


def _reads_backlog(operation: Operation) -> bool:
    return operation.kind == "backfill" and bool(operation.details.get("backlog"))


def _before(operation: Operation, other: Operation) -> bool:
    return (operation.started_ms, operation.id) < (other.started_ms, other.id)
