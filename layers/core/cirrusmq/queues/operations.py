"""Operations: long work on a queue, done in steps that may stop anywhere and run twice.

One kind is a subscription's: it gives a group the messages of its topic's log. One is the
deployment's: handing the logs out again.

    start ──> running ──(steps, each saves how far it is)──> succeeded | failed
                 ^  |
                 |  └── stopped (out of time, crashed): the sweep starts it again
                 └───── from where it last saved

Every step is idempotent, so two runners at once do no harm; a holder keeps them rare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import Conflict, OperationNotFound, QueueNotFound
from cirrusmq.base.names import new_id
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Topic
from cirrusmq.queues.queues import get_queue
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import RUNNING, Document, ItemKey, operation_key
from cirrusmq.storage.queries import Progress

Kind: TypeAlias = Literal["purge", "rewind", "redrive", "backfill", "fan_out", "replay"]
State: TypeAlias = Literal["running", "succeeded", "failed"]
HOLD_MS = 60_000
CANCELLED = "it was cancelled"
"""The detail of an operation that its caller ended."""
DEPLOYMENT = ""
"""In the place of an account's name, which is never empty."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as the directory keeps it. Times are in milliseconds since the epoch."""

    id: str
    account: str
    kind: Kind
    queue: str = ""
    queue_id: str = ""
    topic: str = ""
    """The subscription's topic, for `replay`."""
    details: dict[str, Any]
    """The arguments of the call, by kind."""
    started_ms: int
    by: str = ""
    """The id of the access key that asked for it; empty without one, as for CloudFormation."""
    state: State = "running"
    done: int = 0
    progress: Progress = Progress()
    notes: dict[str, int] = {}
    held_until_ms: int = 0
    finished_ms: int | None = None
    detail: str | None = None


class Step(msgspec.Struct, frozen=True):
    """The result of an operation's step."""

    progress: Progress
    done: int
    """Messages of this step, unless they are counted one by one."""
    detail: str | None = None
    """A sentence about all steps up to this one."""
    notes: dict[str, int] = {}
    """Numbers that later steps need, also in another run."""


class Run:
    """An operation in the hands of its runner."""

    def __init__(self, core: Core, found: Document[Operation]) -> None:
        self._core = core
        self.found = found
        """The operation as this runner last saved it."""

    @property
    def operation(self) -> Operation:
        """The operation and its progress."""
        return self.found.value

    def queue(self) -> Queue:
        """Returns the operation's present queue. Raises QueueNotFound if that one is deleted.

        A run takes minutes. A deletion, a purge, or a change of rewinding is in force once it is
        answered, so a step that makes messages receivable again reads the queue each time.
        """
        queue = get_queue(self._core, self.operation.account, self.operation.queue)
        if queue.id != self.operation.queue_id:  # another queue of that name
            raise QueueNotFound
        return queue

    def count(
        self, notes: Mapping[str, int] | None = None
    ) -> tuple[Document[Operation], dict[str, Any]]:
        """Returns the operation with one message more, and the write that stores it.

        notes: numbers to note in the same write, beside the operation's own.

        In the transaction that deals with the message it keeps `done` exact through crashes, and a
        runner that has lost its lease to another one can deal with none.
        """
        operation = msgspec.structs.replace(
            self.operation,
            done=self.operation.done + 1,
            notes={**self.operation.notes, **(notes or {})},
            held_until_ms=self._core.now_ms() + HOLD_MS,
        )
        write = _put_over(self._core, operation, self.found)
        return self.found.followed_by(operation), write

    def save(self, **changes: Any) -> bool:
        """Writes progress down. Returns False if another runner has taken over."""
        saved = save(self._core, self.found, **changes)
        if saved is None:
            return False
        self.found = saved
        return True


class Pointer(msgspec.Struct, frozen=True):
    """The key of a running operation, for the sweep."""

    account: str
    id: str


def start(
    core: Core, on: Queue | Topic | None, kind: Kind, details: dict[str, Any], by: str = ""
) -> Operation:
    """Writes an operation, then starts its runner; the sweep finds one without a runner.

    on: its queue, the topic of its subscription, or None for work of the deployment.
    """
    operation, writes = creation(core, on, kind, details, by)
    core.store.transact(writes)
    resume(core, _pointer(operation))
    return operation


def creation(
    core: Core,
    on: Queue | Topic | None,
    kind: Kind,
    details: dict[str, Any],
    by: str,
    held_until_ms: int = 0,
) -> tuple[Operation, list[dict[str, Any]]]:
    """Returns an operation and a transaction's writes of it; it runs from `held_until_ms` on."""
    now_ms = core.now_ms()
    operation = Operation(
        id=first_id(now_ms) + new_id(core.random),
        account=DEPLOYMENT if on is None else on.account,
        kind=kind,
        queue=on.name if isinstance(on, Queue) else "",
        queue_id=on.id if isinstance(on, Queue) else "",
        topic=on.name if isinstance(on, Topic) else "",
        details=details,
        started_ms=now_ms,
        by=by,
        held_until_ms=held_until_ms,
    )
    key, expires_at = operation_key(operation.account, operation.id), _expires_at(now_ms)
    return operation, [
        directory_writes.put_new(core, key, operation, expires_at=expires_at),
        directory_writes.put(core, _running_key(operation), _pointer(operation)),
    ]


def of_deployment(core: Core) -> list[Operation]:
    """Returns the deployment's own operations of the last seven days."""
    pk, prefix = operation_key(DEPLOYMENT, "")
    return list(directory.read_list(core, pk, prefix, Operation))


def first_id(time_ms: int) -> str:
    """Returns the beginning of the ids of operations that began at a time: ids sort by it."""
    return f"Op-{ulid.first(time_ms)}"


def release(core: Core, account: str, operation_id: str, **details: Any) -> None:
    """Runs an operation that was created as held, with more details; not a second time."""
    found = _find(core, account, operation_id)
    if found.value.held_until_ms > core.now_ms() and found.version == 1:
        details = found.value.details | details
        if save(core, found, details=details, held_until_ms=0) is not None:
            resume(core, _pointer(found.value))


def resume(core: Core, pointer: Pointer, hops: int = 0) -> None:
    """Starts a runner of an operation; `hops` runs in a row have led to this one."""
    core.invoke("replay", {"operation": msgspec.to_builtins(pointer), "hops": hops})


def get(core: Core, account: str, operation_id: str) -> Operation:
    """Returns an operation. Raises OperationNotFound, also 7 days after it began."""
    return _find(core, account, operation_id).value


def of_queue(core: Core, queue: Queue) -> list[Operation]:
    """Returns the queue's operations of the last seven days, the newest first.

    It reads all operations of the account.
    """
    pk, prefix = operation_key(queue.account, "")
    found = directory.read_list(core, pk, prefix, Operation)
    since_ms = core.now_ms() - limits.OPERATION_SECONDS * 1000
    own = [each for each in found if each.queue_id == queue.id and each.started_ms > since_ms]
    return sorted(own, key=lambda each: (each.started_ms, each.id), reverse=True)


def cancel(core: Core, account: str, operation_id: str) -> Operation:
    """Ends a running operation; its finished steps stay. Raises Conflict if it has ended.

    Each step of its runner is a write over the version that the runner last saved, so that none
    follows this one:

        runner   step 7, version 8 ──────────────── step 8 over version 8: refused, it stops
        caller                     cancelled, version 9
    """
    while True:
        found = _find(core, account, operation_id)
        if found.value.state != "running":
            raise Conflict(f"operation {operation_id} is not running")
        ended = {"state": "failed", "detail": CANCELLED, "finished_ms": core.now_ms()}
        saved = save(core, found, **ended)
        if saved is not None:
            return saved.value


def running(core: Core) -> Iterable[Pointer]:
    """Yields pointers to operations that are not finished."""
    return directory.read_list(core, RUNNING, "", Pointer)


def hold(core: Core, account: str, operation_id: str) -> Document[Operation] | None:
    """Becomes the operation's runner. Returns None if it is finished or has another runner."""
    found = _find(core, account, operation_id)
    now_ms = core.now_ms()
    if found.value.state != "running" or now_ms < found.value.held_until_ms:
        return None
    return save(core, found, held_until_ms=now_ms + HOLD_MS)


def save(core: Core, found: Document[Operation], **changes: Any) -> Document[Operation] | None:
    """Writes progress down. Returns None if another runner has taken over since."""
    operation = msgspec.structs.replace(found.value, **changes)
    writes = [_put_over(core, operation, found)]
    if operation.state != "running":
        writes.append(directory_writes.delete(core, _running_key(operation)))
    try:
        core.store.transact(writes)
    except TransactionRefused:
        return None
    return found.followed_by(operation)


def finish(
    core: Core,
    found: Document[Operation],
    state: Literal["succeeded", "failed"],
    detail: str | None,
) -> None:
    """Ends the operation with a state and a detail."""
    save(core, found, state=state, finished_ms=core.now_ms(), detail=detail)


def _find(core: Core, account: str, operation_id: str) -> Document[Operation]:
    if len(operation_id) > limits.GIVEN_ID_CHARACTERS:
        raise OperationNotFound
    found = directory.read(core, operation_key(account, operation_id), Operation)
    if found is None:
        raise OperationNotFound
    if core.now_ms() >= _expires_at(found.value.started_ms) * 1000:
        raise OperationNotFound
    return found


def _put_over(core: Core, operation: Operation, found: Document[Operation]) -> dict[str, Any]:
    key = operation_key(operation.account, operation.id)
    expires_at = _expires_at(operation.started_ms)
    return directory_writes.put_over(core, key, operation, found, expires_at=expires_at)


def _expires_at(started_ms: int) -> int:
    return started_ms // 1000 + limits.OPERATION_SECONDS


def _running_key(operation: Operation) -> ItemKey:
    return ItemKey(RUNNING, operation.id)


def _pointer(operation: Operation) -> Pointer:
    return Pointer(operation.account, operation.id)
