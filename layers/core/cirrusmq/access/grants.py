"""Grants between accounts: of a queue's owner, and of a topic's, to another account."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeVar

import msgspec

from cirrusmq.base.errors import (
    GrantNotFound,
    InvalidParameter,
    QueueNotFound,
    TopicNotFound,
)
from cirrusmq.base.names import ACCOUNT_NAME, check_name
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Topic
from cirrusmq.queues.queues import get_queue
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import (
    ItemKey,
    grant_key,
    granted_key,
    topic_grant_key,
    topic_granted_key,
)
from cirrusmq.storage.pages import read_page
from cirrusmq.subscriptions.topics import get_topic

Permission: TypeAlias = Literal["send", "receive", "send_receive", "info", "admin", "full"]
TopicPermission: TypeAlias = Literal[
    "publish", "subscribe", "publish_subscribe", "info", "admin", "full"
]


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """The permission of an account on another account's queue."""

    owner: str
    queue: str
    queue_id: str
    account: str
    permission: Permission


class TopicGrant(msgspec.Struct, frozen=True, kw_only=True):
    """The permission of an account on another account's topic."""

    owner: str
    topic: str
    topic_id: str
    account: str
    permission: TopicPermission


G = TypeVar("G", Grant, TopicGrant)


class AnyGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A grant of either kind, as the list of the account that has it holds them."""

    owner: str
    queue: str | None = None
    queue_id: str | None = None
    topic: str | None = None
    topic_id: str | None = None
    account: str
    permission: str


def granted(core: Core, key: ItemKey, shape: type[G]) -> G | None:
    """Returns the grant in the list of the account that has it, by the cache, or None."""
    return directory.read_cached(core, key, shape)


def put_grant(core: Core, queue: Queue, account: str, permission: Permission) -> Grant:
    """Lets an account use a queue; replaces its earlier grant."""
    grant = Grant(
        owner=queue.account,
        queue=queue.name,
        queue_id=queue.id,
        account=account,
        permission=permission,
    )
    return _write(core, _of_queue(queue, account), grant)


def put_topic_grant(
    core: Core, topic: Topic, account: str, permission: TopicPermission
) -> TopicGrant:
    """Lets an account use a topic; replaces its earlier grant."""
    grant = TopicGrant(
        owner=topic.account,
        topic=topic.name,
        topic_id=topic.id,
        account=account,
        permission=permission,
    )
    return _write(core, _of_topic(topic, account), grant)


def get_grant(core: Core, queue: Queue, account: str) -> Grant:
    """Returns the grant of an account on a queue. Raises GrantNotFound."""
    return _read(core, grant_key(queue.id, account), Grant)


def get_topic_grant(core: Core, topic: Topic, account: str) -> TopicGrant:
    """Returns the grant of an account on a topic. Raises GrantNotFound."""
    return _read(core, topic_grant_key(topic.id, account), TopicGrant)


def delete_grant(core: Core, queue: Queue, account: str) -> None:
    """Takes a grant back."""
    get_grant(core, queue, account)
    _delete(core, _of_queue(queue, account))


def delete_topic_grant(core: Core, topic: Topic, account: str) -> None:
    """Takes a grant on a topic back. The subscriptions that the account made are still there."""
    get_topic_grant(core, topic, account)
    _delete(core, _of_topic(topic, account))


def page_of_grants(
    core: Core, queue: Queue, limit: int, cursor: str | None
) -> tuple[list[Grant], str | None]:
    """A page of the grants on a queue, by account."""
    return read_page(core, ("grants", queue.id), grant_key(queue.id, ""), limit, cursor, Grant)


def page_of_topic_grants(
    core: Core, topic: Topic, limit: int, cursor: str | None
) -> tuple[list[TopicGrant], str | None]:
    """A page of the grants on a topic, by account."""
    key = topic_grant_key(topic.id, "")
    return read_page(core, ("grants", topic.id), key, limit, cursor, TopicGrant)


def page_of_granted(
    core: Core, account: str, limit: int, cursor: str | None
) -> tuple[list[AnyGrant], str | None]:
    """A page of the grants that other accounts gave to this one."""
    key = (granted_key(account, "", "").pk, "")
    return read_page(
        core,
        ("granted", account),
        key,
        limit,
        cursor,
        AnyGrant,
        lambda grant: in_force(core, grant),
    )


def in_force(core: Core, grant: Grant | TopicGrant | AnyGrant) -> bool:
    """Returns True if its queue or topic still exists; a new one of the same name is another."""
    try:
        if isinstance(grant, TopicGrant) or (isinstance(grant, AnyGrant) and grant.topic):
            return get_topic(core, grant.owner, grant.topic or "").id == grant.topic_id
        return get_queue(core, grant.owner, grant.queue or "").id == grant.queue_id
    except (QueueNotFound, TopicNotFound):
        return False


def _of_queue(queue: Queue, account: str) -> tuple[ItemKey, ItemKey]:
    """Returns both keys of a grant: in the list of its queue, and in the list of its account."""
    return grant_key(queue.id, account), granted_key(account, queue.account, queue.name)


def _of_topic(topic: Topic, account: str) -> tuple[ItemKey, ItemKey]:
    return (
        topic_grant_key(topic.id, account),
        topic_granted_key(account, topic.account, topic.name),
    )


def _write(core: Core, keys: tuple[ItemKey, ItemKey], grant: G) -> G:
    check_name("account", grant.account, ACCOUNT_NAME)
    if grant.account == grant.owner:
        raise InvalidParameter("account", "must be another account; the owner has every permission")
    found = directory.read(core, keys[0], type(grant))
    core.store.transact([directory_writes.put(core, key, grant, found) for key in keys])
    core.cache.turn_over(keys[1])
    return grant


def _read(core: Core, key: ItemKey, shape: type[G]) -> G:
    found = directory.read(core, key, shape)
    if found is None:
        raise GrantNotFound
    return found.value


def _delete(core: Core, keys: tuple[ItemKey, ItemKey]) -> None:
    core.store.transact([directory_writes.delete(core, key) for key in keys])
    core.cache.turn_over(keys[1])
