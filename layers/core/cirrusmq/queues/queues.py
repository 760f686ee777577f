"""Creating, changing, showing, listing and deleting queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from cirrusmq.base import limits
from cirrusmq.base.errors import (
    AlreadyExists,
    InUse,
    InvalidParameter,
    LimitExceeded,
    QueueNotFound,
)
from cirrusmq.base.names import check_name, new_id
from cirrusmq.model.queue import Queue, QueueInput, change_attributes, create_attributes
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused
from cirrusmq.storage import directory
from cirrusmq.storage.directory import Document
from cirrusmq.storage.directory_keys import (
    account_place,
    queue_changes_place,
    queue_place,
    queue_users_place,
    receivers_count_place,
    resource_place,
)
from cirrusmq.storage.optimistic_locking import contended, tries
from cirrusmq.storage.pages import read_page

RESOURCE_SECONDS = 60 * 86_400


class Resource(msgspec.Struct, frozen=True):
    """What a resource's id stands for, for the meter and the reports."""

    account: str
    kind: str
    name: str
    pushed: bool = False
    """Whether it is a subscription that is pushed to a URL."""


def get_queue(core: Core, account: str, name: str) -> Queue:
    """The queue of exactly this name, as the cache has it; QueueNotFound."""
    queue = directory.read_cached(core, queue_place(account, name), Queue)
    if queue is None or queue.name != name:
        raise QueueNotFound(f"account {account} has no queue {name}")
    return queue


def endpoint_queue(core: Core, account: str, name: str, queue_id: str | None) -> Queue | None:
    """The queue of this id that a subscription delivers to; None where it is gone.

    A topic may have a hundred of them, and as many environments ask each second. So they read
    that no queue of the account has changed, which is one small item, and keep the queues longer:

        a change       queue, and one change more, in one transaction ── a second later: answered
        environments   have read the number again by then, and read their queues anew
    """
    changes = directory.read_count(core, queue_changes_place(account))

    def load() -> Queue | None:
        found = directory.read(core, queue_place(account, name), Queue)
        return found.value if found and found.value.id == queue_id else None

    return core.slow_cache.get(("endpoint", queue_id, changes), load)


def create_queue(core: Core, account: str, name: str, given: QueueInput) -> tuple[Queue, bool]:
    """Create a queue, or find it with exactly these attributes; answers (queue, created)."""
    check_name("queue", name)
    attributes = create_attributes(given)
    for _ in tries(core):
        found = directory.read(core, queue_place(account, name), Queue)
        if found is not None:
            if found.value.name != name or found.value.attributes != attributes:
                raise AlreadyExists(f"queue {found.value.name} exists with other attributes")
            return found.value, False
        now_ms = core.now_ms()
        queue = Queue(
            account=account,
            name=name,
            id=new_id(core.random),
            attributes=attributes,
            created_ms=now_ms,
            modified_ms=now_ms,
        )
        target = _dead_letter_target(core, queue)
        writes = [
            directory.put_new(
                core, queue_place(account, name), queue, dead_letter_id=target and target.id
            ),
            _count_queues(core, account, 1),
            directory.put_new(
                core,
                resource_place(queue.id),
                Resource(account, "queue", name),
            ),
            *_refer(core, queue, None, target),
        ]
        try:
            core.store.transact(writes)
        except TransactionRefused as refused:
            if 1 in refused.failed:
                raise LimitExceeded(
                    f"an account has at most {limits.QUEUES_PER_ACCOUNT:,} queues"
                ) from refused
            continue
        core.cache.turn_over(queue_place(account, name))
        return queue, True
    raise contended()


def change_queue(core: Core, account: str, name: str, given: QueueInput) -> Queue:
    """Change some attributes."""
    return update_queue(
        core, account, name, lambda queue: change_attributes(queue, given, core.now_ms())
    )


def update_queue(core: Core, account: str, name: str, change: Callable[[Queue], Queue]) -> Queue:
    """Write what `change` makes of the queue; in force everywhere when this returns."""
    place = queue_place(account, name)
    for _ in tries(core):
        found = find_queue(core, account, name)
        queue = change(found.value)
        target = _dead_letter_target(core, queue)
        writes = [
            directory.put_over(
                core, place, queue, found.version, dead_letter_id=target and target.id
            ),
            *_refer(core, queue, found.value, target),
            directory.change_count(core, queue_changes_place(account), 1),
        ]
        try:
            core.store.transact(writes)
        except TransactionRefused:
            continue
        core.cache.turn_over(place, queue_changes_place(account))
        return queue
    raise contended()


def check_unused(core: Core, queue: Queue) -> None:
    """InUse where something refers to the queue now."""
    users = core.store.get(core.tables.directory, *queue_users_place(queue.id))
    if users is not None and users.keys() & {"dead_letters_of", "endpoint_of"}:
        raise InUse(f"queue {queue.name} is a dead-letter queue or a subscription's endpoint")


def remove_queue(core: Core, found: Document[Queue]) -> bool:
    """Delete a queue as it was read; False where it changed since, is used or has receivers."""
    queue = found.value
    place = queue_place(queue.account, queue.name)
    writes = [
        directory.delete_version(core, place, found.version),
        directory.check_unused(core, queue.id, "dead_letters_of", "endpoint_of"),
        directory.delete_count(core, receivers_count_place(queue.id)),
        _count_queues(core, queue.account, -1),
        directory.put(
            core,
            resource_place(queue.id),
            Resource(queue.account, "queue", queue.name),
            expires_at=core.now_ms() // 1000 + RESOURCE_SECONDS,
        ),
        *_refer(core, None, queue, None),
    ]
    try:
        core.store.transact(writes)
    except TransactionRefused:
        return False
    core.cache.turn_over(place)
    return True


def list_queues(
    core: Core, account: str, prefix: str, limit: int, cursor: str | None
) -> tuple[list[Queue], str | None]:
    """A page of the account's queues whose names begin with `prefix`, with its case."""
    return read_page(
        core,
        ("queues", account, prefix),
        queue_place(account, prefix),
        limit,
        cursor,
        Queue,
        lambda queue: queue.name.startswith(prefix),
    )


def find_queue(core: Core, account: str, name: str) -> Document[Queue]:
    """The queue as the directory has it now; QueueNotFound."""
    found = directory.read(core, queue_place(account, name), Queue)
    if found is None or found.value.name != name:
        raise QueueNotFound(f"account {account} has no queue {name}")
    return found


def _dead_letter_target(core: Core, queue: Queue) -> Queue | None:
    """The queue's dead-letter queue, checked as far as reading can; conditions do the rest."""
    dead_letter = queue.attributes.dead_letter
    if dead_letter is None:
        return None
    check_name("dead_letter.queue", dead_letter.queue)
    if dead_letter.queue.lower() == queue.name.lower():
        raise InvalidParameter("dead_letter.queue", "must be another queue")
    target = find_queue(core, queue.account, dead_letter.queue).value
    if target.attributes.dead_letter is not None:
        raise InvalidParameter(
            "dead_letter.queue", "must be a queue that has no dead_letter itself"
        )
    if target.attributes.ordered and not queue.attributes.ordered:
        raise InvalidParameter(
            "dead_letter.queue", "an ordered queue takes dead letters of ordered queues only"
        )
    users = core.store.get(core.tables.directory, *queue_users_place(queue.id))
    if users is not None and "dead_letters_of" in users:
        raise InvalidParameter(
            "dead_letter", "a queue that others use as dead-letter queue can have none itself"
        )
    return target


def _refer(
    core: Core, queue: Queue | None, before: Queue | None, target: Queue | None
) -> list[dict[str, Any]]:
    """Keep the references to dead-letter queues in step, and forbid chains.

    A: PATCH a -> dead letters to b      reads b: no dead_letter
    B: PATCH b -> dead letters to c      reads a's users of b: none
    A: writes a, b gets a user           B's check "b has no users" fails: it reads again
    """
    owner = queue or before
    assert owner is not None
    old_dead_letter = before.attributes.dead_letter if before else None
    old_name = old_dead_letter.queue if old_dead_letter else None
    new_name = target.name if target else None
    writes = []
    if target is not None and queue is not None:
        writes.append(
            directory.check(
                core,
                queue_place(queue.account, target.name),
                "attribute_exists(pk) AND attribute_not_exists(dead_letter_id)",
            )
        )
        writes.append(directory.check_unused(core, queue.id, "dead_letters_of"))
    if old_name == new_name:
        return writes
    if old_name is not None:
        old = find_queue(core, owner.account, old_name).value
        writes.append(directory.change_users(core, old.id, "dead_letters_of", "DELETE", owner.id))
    if target is not None:
        writes.append(directory.change_users(core, target.id, "dead_letters_of", "ADD", owner.id))
    return writes


def _count_queues(core: Core, account: str, by: int) -> dict[str, Any]:
    place = account_place(account)
    if by < 0:
        return directory.change_count(core, place, by)
    below = "attribute_not_exists(#count) OR #count < :bound"
    return directory.change_count(core, place, by, below, limits.QUEUES_PER_ACCOUNT)
