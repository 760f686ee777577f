"""Creating, changing, showing, listing and deleting queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import (
    AlreadyExists,
    InUse,
    InvalidParameter,
    LimitExceeded,
    QueueNotFound,
)
from cirrusmq.base.names import FIFO, QUEUE_NAME, check_name, new_id, other_fifo_name
from cirrusmq.model.described import with_given
from cirrusmq.model.pauses import changed as pauses_changed
from cirrusmq.model.queue import (
    Queue,
    QueueInput,
    SdkAttributes,
    change_attributes,
    create_attributes,
)
from cirrusmq.queues.resources import Resource, expire_resource, find_resource, put_resource
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import (
    Document,
    account_key,
    queue_changes_key,
    queue_key,
    queue_users_key,
    receivers_count_key,
)
from cirrusmq.storage.optimistic_locking import DirectoryChange, change
from cirrusmq.storage.pages import read_page


def get_queue(core: Core, account: str, name: str) -> Queue:
    """Returns the queue of exactly this name, as the cache has it. Raises QueueNotFound."""
    queue = directory.read_cached(core, queue_key(account, name), Queue)
    if queue is None or queue.name != name:
        raise QueueNotFound(f"account {account} has no queue {name}")
    return queue


def endpoint_queue(core: Core, account: str, name: str, queue_id: str | None) -> Queue | None:
    """Returns the queue of this id that a subscription delivers to, or None if it is gone.

    A topic may have a hundred of them, and as many environments ask each second. So they read
    that no queue of the account has changed, which is one small item, and keep the queues longer:

        a change       queue, and one change more, in one transaction ── a second later: answered
        environments   have read the number again by then, and read their queues again
    """
    changes = directory.read_count(core, queue_changes_key(account))

    def load() -> Queue | None:
        found = directory.read(core, queue_key(account, name), Queue)
        return found.value if found and found.value.id == queue_id else None

    return core.slow_cache.get(("endpoint", queue_id, changes), load)


def create_queue(
    core: Core,
    account: str,
    name: str,
    given: QueueInput,
    *,
    resource_id: str | None = None,
    exact: bool = False,
    sdk: SdkAttributes | None = None,
) -> tuple[Queue, bool]:
    """Creates a queue, or finds one with these attributes. Returns (queue, created).

    An attribute that is not given is not compared, but with `exact` must be at its default.
    resource_id: the id of a new queue, never used before; None draws one. sdk: other services'
    attributes of a new queue; not compared with a queue that exists.
    """
    check_name("queue", name, QUEUE_NAME)
    core.settings.check_message_bytes(given.max_message_bytes)
    now_ms = core.now_ms()
    queue = Queue(
        account=account,
        name=name,
        id=resource_id or new_id(core.random),
        # Impossible attributes are refused, whether the queue exists or not.
        attributes=create_attributes(given),
        created_ms=now_ms,
        modified_ms=now_ms,
        sdk=sdk,
        pauses=pauses_changed([], now_ms, paused=given.paused is True),
    )
    return change(core, lambda: _creation(core, queue, given, exact))


def _creation(
    core: Core, queue: Queue, given: QueueInput, exact: bool
) -> DirectoryChange[tuple[Queue, bool]]:
    account, name = queue.account, queue.name
    key = queue_key(account, name)
    found = directory.read(core, key, Queue)
    if found is not None:
        held = found.value.attributes
        wanted = queue.attributes if exact else with_given(held, given)
        if found.value.name != name or held != wanted:
            raise AlreadyExists(f"queue {found.value.name} exists with other attributes")
        return DirectoryChange(result=(found.value, False))
    others = _other_name_is_free(core, queue)
    target = _dead_letter_target(core, queue, None)
    limit = limits.QUEUES_PER_ACCOUNT
    return DirectoryChange(
        result=(queue, True),
        writes=[
            directory_writes.put_new(core, key, queue, dead_letter_id=target and target.id),
            directory_writes.count_up(core, account_key(account), limit),
            put_resource(core, queue.id, Resource(account, "queue", name)),
            *_refer(core, queue, None, target),
            *others,
        ],
        refusals={1: LimitExceeded(f"an account has at most {limit:,} queues")},
        keys=[key],
    )


def _other_name_is_free(core: Core, queue: Queue) -> list[dict[str, Any]]:
    """The condition that there is no `orders_fifo` beside an ordered `orders.fifo`; or reversed.

    Raises AlreadyExists if there is one; InvalidParameter if an unordered queue ends in `.fifo`.
    """
    ordered = queue.attributes.ordered
    if queue.name.endswith(FIFO) and not ordered:
        raise InvalidParameter("queue", "must not end in .fifo: the queue is not ordered")
    other = other_fifo_name(queue.name) if ordered else None
    if other is None:
        return []
    key = queue_key(queue.account, other)
    found = directory.read(core, key, Queue)
    if found is None:
        return [directory_writes.check(core, key, "attribute_not_exists(pk)")]
    if found.value.attributes.ordered:
        raise AlreadyExists(f"queue {other} exists, which SQS's callers know by the same name")
    return []


def change_queue(
    core: Core, account: str, name: str, given: QueueInput, texts: Mapping[str, str] | None = None
) -> Queue:
    """Changes some attributes of a queue.

    texts: new values of texts that other services' SDKs keep with it, by name.
    """
    core.settings.check_message_bytes(given.max_message_bytes)

    def changed(before: Queue) -> Queue:
        after = change_attributes(before, given, core.now_ms())
        if not texts:
            return after
        sdk = replace(before.sdk or SdkAttributes(), texts={**before.sdk_texts, **texts})
        return replace(after, sdk=sdk)

    return update_queue(core, account, name, changed)


def update_queue(core: Core, account: str, name: str, update: Callable[[Queue], Queue]) -> Queue:
    """Writes the result of `update` on the queue; in force everywhere when this returns."""

    def plan() -> DirectoryChange[Queue]:
        found = find_queue(core, account, name)
        queue = update(found.value)
        return DirectoryChange(
            result=queue,
            writes=update_writes(core, found, queue),
            keys=[queue_key(account, name), queue_changes_key(account)],
        )

    return change(core, plan)


def update_writes(core: Core, found: Document[Queue], queue: Queue) -> list[dict[str, Any]]:
    """Returns a transaction's writes of a queue over the version that was read."""
    target = _dead_letter_target(core, queue, found.value)
    key, target_id = queue_key(queue.account, queue.name), target and target.id
    return [
        directory_writes.put_over(core, key, queue, found, dead_letter_id=target_id),
        *_refer(core, queue, found.value, target),
        directory_writes.change_count(core, queue_changes_key(queue.account), 1),
    ]


def check_unused(core: Core, queue: Queue) -> None:
    """Raises InUse if something refers to the queue now."""
    users = core.store.get(core.tables.directory, *queue_users_key(queue.id))
    if users is not None and users.keys() & {"dead_letters_of", "endpoint_of"}:
        raise InUse(f"queue {queue.name} is a dead-letter queue or a subscription's endpoint")


def queue_removal(core: Core, found: Document[Queue]) -> DirectoryChange[None]:
    """Returns the deletion of a queue; refused if it has changed, is used or has receivers."""
    queue = found.value
    key = queue_key(queue.account, queue.name)
    return DirectoryChange(
        result=None,
        writes=[
            directory_writes.delete_version(core, key, found.version),
            directory_writes.check_unused(core, queue.id, "dead_letters_of", "endpoint_of"),
            directory_writes.delete_count(core, receivers_count_key(queue.id)),
            directory_writes.change_count(core, account_key(queue.account), -1),
            expire_resource(core, queue.id, Resource(queue.account, "queue", queue.name)),
            *_refer(core, None, queue, None),
        ],
        keys=[key],
    )


def list_queues(
    core: Core, account: str, prefix: str, limit: int, cursor: str | None
) -> tuple[list[Queue], str | None]:
    """Returns a page of the account's queues whose names begin with `prefix`, with its case."""
    return read_page(
        core,
        ("queues", account, prefix),
        queue_key(account, prefix),
        limit,
        cursor,
        Queue,
        lambda queue: queue.name.startswith(prefix),
    )


def users_of(core: Core, queue: Queue, use: directory_writes.Use) -> list[Resource]:
    """Returns the queues and subscriptions that use a queue in a way, in no order."""
    users = core.store.get(core.tables.directory, *queue_users_key(queue.id)) or {}
    ids = users.get(use, {"SS": []})["SS"]
    return [found for each in ids if (found := find_resource(core, each)) is not None]


def dead_letter_sources(core: Core, queue: Queue) -> list[Queue]:
    """Returns the queues whose dead letters this one takes, by name; a read unit for each."""
    named = users_of(core, queue, "dead_letters_of")
    # Subscriptions are among the users as well.
    read = [
        directory.read(core, queue_key(found.account, found.name), Queue)
        for found in named
        if found.kind == "queue"
    ]
    return sorted((found.value for found in read if found), key=lambda queue: queue.name)


def find_queue(core: Core, account: str, name: str) -> Document[Queue]:
    """Returns the queue as the directory has it now. Raises QueueNotFound."""
    found = directory.read(core, queue_key(account, name), Queue)
    if found is None or found.value.name != name:
        raise QueueNotFound(f"account {account} has no queue {name}")
    return found


def _dead_letter_target(core: Core, queue: Queue, before: Queue | None) -> Queue | None:
    """Returns the queue's dead-letter queue, checked as far as reads can; conditions do the rest.

    before: the queue before a change, whose dead-letter queue goes on taking its messages.
    """
    dead_letter = queue.attributes.dead_letter
    if dead_letter is None:
        return None
    check_name("dead_letter.queue", dead_letter.queue, QUEUE_NAME)
    if dead_letter.queue.lower() == queue.name.lower():
        raise InvalidParameter("dead_letter.queue", "must be another queue")
    target = find_queue(core, queue.account, dead_letter.queue).value
    if target.attributes.dead_letter is not None:
        raise InvalidParameter(
            "dead_letter.queue", "must be a queue that has no dead-letter queue itself"
        )
    if target.attributes.ordered and not queue.attributes.ordered:
        raise InvalidParameter("dead_letter.queue", "must not be ordered: this queue is not")
    held = before.attributes.dead_letter if before else None
    allowed = target.sdk.dead_letters_from if target.sdk else None
    is_new = held is None or held.queue != dead_letter.queue
    if is_new and allowed is not None and queue.name not in allowed:
        raise InvalidParameter(
            "dead_letter.queue", "does not allow this queue: see its RedriveAllowPolicy"
        )
    users = core.store.get(core.tables.directory, *queue_users_key(queue.id))
    if users is not None and "dead_letters_of" in users:
        raise InvalidParameter(
            "dead_letter", "is not allowed: other queues use this one as their dead-letter queue"
        )
    return target


def _refer(
    core: Core, queue: Queue | None, before: Queue | None, target: Queue | None
) -> list[dict[str, Any]]:
    """Returns writes that keep the references to dead-letter queues in step, and forbid chains.

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
            directory_writes.check(
                core,
                queue_key(queue.account, target.name),
                "attribute_exists(pk) AND attribute_not_exists(dead_letter_id)",
            )
        )
        writes.append(directory_writes.check_unused(core, queue.id, "dead_letters_of"))
    if old_name == new_name:
        return writes
    if old_name is not None:
        old = find_queue(core, owner.account, old_name).value
        writes.append(
            directory_writes.change_users(core, old.id, "dead_letters_of", "DELETE", owner.id)
        )
    if target is not None:
        writes.append(
            directory_writes.change_users(core, target.id, "dead_letters_of", "ADD", owner.id)
        )
    return writes
