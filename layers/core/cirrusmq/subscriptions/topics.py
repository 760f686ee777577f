"""Creating, changing, listing and deleting topics."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from cirrusmq.base import limits
from cirrusmq.base.errors import AlreadyExists, InvalidParameter, LimitExceeded, TopicNotFound
from cirrusmq.base.names import check_name, new_id
from cirrusmq.model.topic import Topic, TopicAttributes, TopicInput
from cirrusmq.queues.queues import RESOURCE_SECONDS, Resource
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused
from cirrusmq.storage import directory
from cirrusmq.storage.directory import Document
from cirrusmq.storage.directory_keys import (
    resource_place,
    subscriptions_count_place,
    topic_place,
    topics_count_place,
)
from cirrusmq.storage.optimistic_locking import contended, tries
from cirrusmq.storage.pages import read_page


def get_topic(core: Core, account: str, name: str) -> Topic:
    """The topic of exactly this name, as the cache has it; TopicNotFound."""
    check_name("topic", name, limits.TOPIC_NAME)
    topic = directory.read_cached(core, topic_place(account, name), Topic)
    if topic is None or topic.name != name:
        raise TopicNotFound(f"account {account} has no topic {name}")
    return topic


def create_topic(core: Core, account: str, name: str, given: TopicInput) -> tuple[Topic, bool]:
    """Create a topic, or find it with exactly these attributes; answers (topic, created)."""
    check_name("topic", name, limits.TOPIC_NAME)
    attributes = _over(TopicAttributes(), given)
    place = topic_place(account, name)
    for _ in tries(core):
        found = directory.read(core, place, Topic)
        if found is not None:
            if found.value.name != name or found.value.attributes != attributes:
                raise AlreadyExists(f"topic {found.value.name} exists with other attributes")
            return found.value, False
        now_ms = core.now_ms()
        topic = Topic(
            account=account,
            name=name,
            id=new_id(core.random),
            attributes=attributes,
            created_ms=now_ms,
            modified_ms=now_ms,
        )
        resource = Resource(account, "topic", name)
        below = "attribute_not_exists(#count) OR #count < :bound"
        most = limits.TOPICS_PER_ACCOUNT
        try:
            core.store.transact(
                [
                    directory.put_new(core, place, topic),
                    directory.change_count(core, topics_count_place(account), 1, below, most),
                    directory.put_new(core, resource_place(topic.id), resource),
                ]
            )
        except TransactionRefused as refused:
            if 1 in refused.failed:
                raise LimitExceeded(f"an account has at most {most:,} topics") from refused
            continue
        core.cache.turn_over(place)
        return topic, True
    raise contended()


def change_topic(core: Core, account: str, name: str, given: TopicInput) -> Topic:
    """Change some attributes; `filter` and `partitions` are fixed."""
    place = topic_place(account, name)
    for _ in tries(core):
        found = find_topic(core, account, name)
        before = found.value
        attributes = _over(before.attributes, given)
        if attributes.filter != before.attributes.filter:
            raise InvalidParameter("filter", "is fixed when the topic is created")
        if attributes.partitions != before.attributes.partitions:
            raise InvalidParameter("partitions", "are fixed when the topic is created")
        topic = msgspec.structs.replace(before, attributes=attributes, modified_ms=core.now_ms())
        try:
            core.store.transact([directory.put_over(core, place, topic, found.version)])
        except TransactionRefused:
            continue
        core.cache.turn_over(place)
        return topic
    raise contended()


def remove_topic(core: Core, found: Document[Topic]) -> bool:
    """Delete a topic as it was read; False where it changed since, or has subscriptions.

    DELETE topic        lists its subscriptions: none ────────────────> refused: the count is 1
    PUT subscription    the topic is there ──> stored, the count is 1
    """
    topic = found.value
    place = topic_place(topic.account, topic.name)
    try:
        core.store.transact(
            [
                directory.delete_version(core, place, found.version),
                directory.delete_count(core, subscriptions_count_place(topic.id)),
                directory.change_count(core, topics_count_place(topic.account), -1),
                directory.put(
                    core,
                    resource_place(topic.id),
                    Resource(topic.account, "topic", topic.name),
                    expires_at=core.now_ms() // 1000 + RESOURCE_SECONDS,
                ),
            ]
        )
    except TransactionRefused:
        return False
    core.cache.turn_over(place)
    return True


def list_topics(
    core: Core, account: str, prefix: str, limit: int, cursor: str | None
) -> tuple[list[Topic], str | None]:
    """A page of the account's topics whose names begin with `prefix`, with its case."""
    return read_page(
        core,
        ("topics", account, prefix),
        topic_place(account, prefix),
        limit,
        cursor,
        Topic,
        lambda topic: topic.name.startswith(prefix),
    )


def find_topic(core: Core, account: str, name: str) -> Document[Topic]:
    """The topic as the directory has it now; TopicNotFound."""
    check_name("topic", name, limits.TOPIC_NAME)
    found = directory.read(core, topic_place(account, name), Topic)
    if found is None or found.value.name != name:
        raise TopicNotFound(f"account {account} has no topic {name}")
    return found


def _over(attributes: TopicAttributes, given: TopicInput) -> TopicAttributes:
    changes = msgspec.structs.asdict(given).items()
    return msgspec.structs.replace(
        attributes, **{name: value for name, value in changes if value is not UNSET}
    )
