"""Creating, changing, listing and deleting topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from cirrusmq.base import limits
from cirrusmq.base.errors import AlreadyExists, LimitExceeded, TopicNotFound
from cirrusmq.base.names import TOPIC_NAME, check_name, new_id
from cirrusmq.model.described import with_given
from cirrusmq.model.topic import (
    Topic,
    TopicAttributes,
    TopicInput,
    change_topic_attributes,
)
from cirrusmq.queues.resources import Resource, expire_resource, put_resource
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import (
    Document,
    subscriptions_count_key,
    topic_key,
    topics_count_key,
)
from cirrusmq.storage.optimistic_locking import DirectoryChange, change
from cirrusmq.storage.pages import read_page


def get_topic(core: Core, account: str, name: str) -> Topic:
    """Returns the topic of exactly this name, as the cache has it. Raises TopicNotFound."""
    check_name("topic", name, TOPIC_NAME)
    topic = directory.read_cached(core, topic_key(account, name), Topic)
    if topic is None or topic.name != name:
        raise TopicNotFound(f"account {account} has no topic {name}")
    return topic


def create_topic(
    core: Core,
    account: str,
    name: str,
    given: TopicInput,
    *,
    resource_id: str | None = None,
    exact: bool = False,
    sdk: Mapping[str, str] | None = None,
) -> tuple[Topic, bool]:
    """Creates a topic, or finds one with these attributes. Returns (topic, created).

    An attribute that is not given is not compared, but with `exact` must be at its default.
    resource_id: the id of a new topic, never used before; None draws one. sdk: attributes that an
    SDK of another service sets on a new topic.
    """
    check_name("topic", name, TOPIC_NAME)
    core.settings.check_message_bytes(given.max_message_bytes)
    return change(core, lambda: _creation(core, account, name, given, resource_id, exact, sdk))


def _creation(
    core: Core,
    account: str,
    name: str,
    given: TopicInput,
    resource_id: str | None,
    exact: bool,
    sdk: Mapping[str, str] | None,
) -> DirectoryChange[tuple[Topic, bool]]:
    attributes = with_given(TopicAttributes(), given)
    key = topic_key(account, name)
    found = directory.read(core, key, Topic)
    if found is not None:
        held = found.value.attributes
        wanted = attributes if exact else with_given(held, given)
        if found.value.name != name or held != wanted:
            raise AlreadyExists(f"topic {found.value.name} exists with other attributes")
        return DirectoryChange(result=(found.value, False))
    now_ms = core.now_ms()
    topic = Topic(
        account=account,
        name=name,
        id=resource_id or new_id(core.random),
        attributes=attributes,
        created_ms=now_ms,
        modified_ms=now_ms,
        sdk=dict(sdk or {}),
    )
    limit = limits.TOPICS_PER_ACCOUNT
    return DirectoryChange(
        result=(topic, True),
        writes=[
            directory_writes.put_new(core, key, topic),
            directory_writes.count_up(core, topics_count_key(account), limit),
            put_resource(core, topic.id, Resource(account, "topic", name)),
        ],
        refusals={1: LimitExceeded(f"an account has at most {limit:,} topics")},
        keys=[key],
    )


def change_topic(core: Core, account: str, name: str, given: TopicInput) -> Topic:
    """Changes some attributes; `filter` and `partitions` are fixed."""
    core.settings.check_message_bytes(given.max_message_bytes)

    def update(before: Topic) -> Topic:
        attributes = change_topic_attributes(before.attributes, given)
        return msgspec.structs.replace(before, attributes=attributes)

    return update_topic(core, account, name, update)


def update_topic(core: Core, account: str, name: str, update: Callable[[Topic], Topic]) -> Topic:
    """Writes the result of `update` on a topic."""

    def plan() -> DirectoryChange[Topic]:
        found = find_topic(core, account, name)
        topic = msgspec.structs.replace(update(found.value), modified_ms=core.now_ms())
        key = topic_key(account, name)
        return DirectoryChange(
            result=topic,
            writes=[directory_writes.put_over(core, key, topic, found)],
            keys=[key],
        )

    return change(core, plan)


def topic_removal(core: Core, found: Document[Topic]) -> DirectoryChange[None]:
    """Returns the deletion of a topic as it was read; refused if it changed or has subscriptions.

    DELETE topic        lists its subscriptions: none ────────────────> refused: the count is 1
    PUT subscription    the topic is there ──> stored, the count is 1
    """
    topic = found.value
    key = topic_key(topic.account, topic.name)
    return DirectoryChange(
        result=None,
        writes=[
            directory_writes.delete_version(core, key, found.version),
            directory_writes.delete_count(core, subscriptions_count_key(topic.id)),
            directory_writes.change_count(core, topics_count_key(topic.account), -1),
            expire_resource(core, topic.id, Resource(topic.account, "topic", topic.name)),
        ],
        keys=[key],
    )


def list_topics(
    core: Core, account: str, prefix: str, limit: int, cursor: str | None
) -> tuple[list[Topic], str | None]:
    """Returns a page of the account's topics whose names begin with `prefix`, with its case."""
    return read_page(
        core,
        ("topics", account, prefix),
        topic_key(account, prefix),
        limit,
        cursor,
        Topic,
        lambda topic: topic.name.startswith(prefix),
    )


def find_topic(core: Core, account: str, name: str) -> Document[Topic]:
    """Returns the topic as the directory has it now. Raises TopicNotFound."""
    check_name("topic", name, TOPIC_NAME)
    found = directory.read(core, topic_key(account, name), Topic)
    if found is None or found.value.name != name:
        raise TopicNotFound(f"account {account} has no topic {name}")
    return found
