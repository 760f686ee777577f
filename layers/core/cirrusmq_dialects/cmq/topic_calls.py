"""Calls on topics."""

from __future__ import annotations

from cirrusmq.base.errors import AlreadyExists
from cirrusmq.base.limits import TOPIC_LIFE_SECONDS
from cirrusmq.base.shapes import read_values
from cirrusmq.model.topic import TopicInput, TopicKind
from cirrusmq.runtime.core import Core
from cirrusmq.storage.optimistic_locking import DirectoryChange, change
from cirrusmq.subscriptions.state import count_topic
from cirrusmq.subscriptions.subscriptions import list_subscriptions
from cirrusmq.subscriptions.topics import change_topic, find_topic, list_topics, topic_removal
from cirrusmq.subscriptions.topics import create_topic as make_topic
from cirrusmq_dialects.asking import MANAGE, SHOW, all_of
from cirrusmq_dialects.cmq.asking import Asked, Result
from cirrusmq_dialects.cmq.bodies import LARGEST_BYTES
from cirrusmq_dialects.cmq.errors import CmqError
from cirrusmq_dialects.cmq.reading import integer, needed_integer, topic_name

_MAX_SIZE = (1_024, LARGEST_BYTES)
_KINDS: dict[int, TopicKind] = {1: "tags", 2: "routing_key"}
_EXISTS = (4460, 10550, "topic is already existed")
_HAS_SUBSCRIPTIONS = (
    4000,
    10540,
    "there exists subscriptions under this topic, please unsubscribe all of them before"
    " DeleteTopic",
)


def create_topic(asked: Asked) -> Result:
    """Makes a topic; one of the name that exists is refused, as it is there."""
    name = topic_name(asked.params)
    asked.caller.require(MANAGE, "topics", name)
    kind = integer(asked.params, "filterType", (min(_KINDS), max(_KINDS))) or 1
    given: Result = {"filter": _KINDS[kind]}
    size = integer(asked.params, "maxMsgSize", _MAX_SIZE)
    if size is not None:
        given["max_message_bytes"] = size
    request = read_values(given, TopicInput)
    try:
        topic, created = make_topic(asked.core, asked.caller.account, name, request)
    except AlreadyExists as error:
        raise CmqError(*_EXISTS) from error
    if not created:
        raise CmqError(*_EXISTS)
    return {"topicId": f"topic-{topic.id}"}


def set_topic_attributes(asked: Asked) -> Result:
    """Changes the size that its messages may have."""
    name = topic_name(asked.params)
    asked.caller.require(MANAGE, "topics", name)
    size = needed_integer(asked.params, "maxMsgSize", _MAX_SIZE)
    change_topic(
        asked.core,
        asked.caller.account,
        name,
        read_values({"max_message_bytes": size}, TopicInput),
    )
    return {}


def get_topic_attributes(asked: Asked) -> Result:
    """All attributes, and how many messages are not yet taken by all who get them."""
    topic = asked.topic(SHOW)
    kinds = {native: kind for kind, native in _KINDS.items()}
    return {
        "msgCount": count_topic(asked.core, topic),
        "maxMsgSize": topic.attributes.max_message_bytes,
        "msgRetentionSeconds": TOPIC_LIFE_SECONDS,
        "createTime": topic.created_ms // 1000,
        "lastModifyTime": topic.modified_ms // 1000,
        "filterType": kinds[topic.attributes.filter],
    }


def list_topic(asked: Asked) -> Result:
    """The caller's topics, by name."""
    asked.require_whole_account()
    topics = all_of(list_topics, asked.core, asked.caller.account, "")
    entries = [{"topicId": f"topic-{each.id}", "topicName": each.name} for each in topics]
    return asked.listed("topicList", "topicName", entries)


def delete_topic(asked: Asked) -> Result:
    """Deletes a topic that has no subscriptions."""
    name = topic_name(asked.params)
    asked.caller.require(MANAGE, "topics", name)
    change(asked.core, lambda: _removal(asked.core, asked.caller.account, name))
    return {}


def _removal(core: Core, account: str, name: str) -> DirectoryChange[None]:
    """Returns the removal of a topic; planned again if it gets a subscription in between."""
    found = find_topic(core, account, name)
    if list_subscriptions(core, found.value):
        raise CmqError(*_HAS_SUBSCRIPTIONS)
    return topic_removal(core, found)
