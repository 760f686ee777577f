"""The calls: publish, consume, acknowledge."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from cirrusmq.access.scopes import Right
from cirrusmq.base.errors import (
    CirrusMQError,
    InvalidParameter,
    SubscriptionNotFound,
    TopicNotFound,
)
from cirrusmq.base.limits import BATCH_MESSAGES
from cirrusmq.base.shapes import read_values
from cirrusmq.model import receipt as receipts
from cirrusmq.model.message import OF_SDKS
from cirrusmq.model.queue import Queue
from cirrusmq.model.source import Source
from cirrusmq.model.topic import Topic
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions.topics import get_topic
from cirrusmq_dialects.aliyun import groups, reading, writing
from cirrusmq_dialects.aliyun.contents import Draft, shown
from cirrusmq_dialects.aliyun.errors import HandleErrors, MqError, code_of, invalid
from cirrusmq_dialects.asking import CallerAsked
from cirrusmq_dialects.calling import Answer
from cirrusmq_dialects.reporting import Progress

MAKE_GROUP = "MakeGroup"
"""The action of a consume that makes its group: it is in the audit, as native calls are."""
_MAX, _WAIT = (1, BATCH_MESSAGES), (0, 30)
_ANSWER_SECONDS = 2
"""Seconds of the call's time that are left for the last scan and the answer."""
_XML_SHARE = 5
"""`&` is one byte of JSON, and five of XML."""


class Asked(CallerAsked, frozen=True, kw_only=True):
    """A call with its caller and its parameters."""

    name: str
    """The topic's name."""
    params: dict[str, str]
    progress: Progress

    def topic(self, right: Right) -> Topic:
        """Returns the caller's topic in the path. Raises Forbidden if its key lacks the right."""
        try:
            self.caller.require((right,), "topics", self.name)
            return get_topic(self.core, self.caller.account, self.name)
        except InvalidParameter as error:  # no topic can have the name
            raise TopicNotFound from error

    def consumer(self) -> str:
        """The name of the group in `consumer`."""
        name = self.params.get("consumer")
        if not name:
            raise invalid("consumer is required.")
        return name


def publish_message(asked: Asked) -> Answer:
    """Publishes a message, or prepares a half one."""
    topic = asked.topic("send")
    draft = Draft(reading.read_message(asked.call.body))
    if draft.check_after_seconds is not None:
        # Few messages are half: the others' cold starts do without.
        from cirrusmq_dialects.aliyun.halves import half_id, prepare_half

        half = prepare_half(asked.core, topic, asked.caller, draft)
        fields = {
            "MessageId": half_id(half),
            "MessageBodyMD5": draft.md5,
            "ReceiptHandle": half.handle,
        }
        return writing.published(fields, asked.call.id)
    from cirrusmq.publishing.publish import PublishRequest, publish

    request = read_values({"messages": [draft.native]}, PublishRequest)
    (sent,) = publish(asked.core, topic, asked.caller, request, OF_SDKS)
    if isinstance(sent, CirrusMQError):
        raise sent
    return writing.published({"MessageId": sent.id, "MessageBodyMD5": draft.md5}, asked.call.id)


def consume_message(asked: Asked) -> Answer:
    """Consumes messages of a group, and makes a missing group. Raises MqError if it finds none."""
    params, core = asked.params, asked.core
    limit = reading.integer(params, "numOfMessages", _MAX)
    if limit is None:
        raise invalid("numOfMessages is required.")
    wait = reading.integer(params, "waitseconds", _WAIT) or 0
    left = asked.call.left_seconds() - _ANSWER_SECONDS
    trans, name = params.get("trans", ""), asked.consumer()
    if trans == "pop":
        from cirrusmq_dialects.aliyun.halves import consume_halves

        topic = asked.topic("send")
        halves = consume_halves(core, topic, asked.caller.account, limit, min(wait, left))
        return _found(asked, halves)
    if trans not in ("", "order"):
        raise invalid("trans must be order or pop.")
    return _found(asked, _receive(asked, name, limit, wait, ordered=trans == "order"))


def _receive(
    asked: Asked, name: str, limit: int, wait: int, *, ordered: bool
) -> list[dict[str, str]]:
    # Publishers do without.
    from cirrusmq.queues.receivers import source_named
    from cirrusmq.receiving.receive import begin, take_what_fits
    from cirrusmq.receiving.receive_request import ReceiveRequest

    core, topic = asked.core, asked.topic("receive")
    _ready(asked, topic, name, ordered=ordered)

    def find() -> Source:
        return source_named(core, groups.find_group(core, topic, name)[1], None)

    request = read_values({"max": limit, "wait_seconds": wait}, ReceiveRequest)
    begun = begin(core, find, asked.caller, request)
    wanted = begun.wanted
    begun = replace(begun, wanted=replace(wanted, answer_bytes=wanted.answer_bytes // _XML_SHARE))
    left = asked.call.left_seconds() - _ANSWER_SECONDS
    return [
        {
            "MessageId": each.parcel.message_id(each.index),
            **shown(each.message),
            "ReceiptHandle": each.receipt,
            "PublishTime": str(each.parcel.sent_ms),
            "FirstConsumeTime": str(each.parcel.first_received_ms[each.index]),
            "NextConsumeTime": str(each.parcel.visible_ms[each.index]),
            "ConsumedTimes": str(each.parcel.tries(each.index)),
        }
        for each in take_what_fits(core, begun, asked.caller, left)
    ]


def _ready(asked: Asked, topic: Topic, name: str, *, ordered: bool) -> Queue:
    """The group's queue, with the tag that this consumer asks for."""
    core, tag = asked.core, asked.params.get("tag")
    try:
        group, queue = groups.find_group(core, topic, name)
    except SubscriptionNotFound:
        asked.caller.require(("manage",), "topics", topic.name)
        asked.progress.action = MAKE_GROUP
        groups.make_group(core, topic, name, tag, ordered=ordered)
        group, queue = groups.find_group(core, topic, name)
    if queue.attributes.ordered != ordered:
        how = "in order, with trans=order" if queue.attributes.ordered else "without trans=order"
        raise invalid(f"Group {name} consumes {how}.")
    groups.choose_tag(core, topic, group, tag)
    return queue


def _found(asked: Asked, messages: list[dict[str, str]]) -> Answer:
    if not messages:
        raise MqError("MessageNotExist")
    return writing.consumed(messages, asked.call.id)


def acknowledge(asked: Asked) -> Answer:
    """Ends messages, each separately, or decides half messages."""
    trans, name = asked.params.get("trans", ""), asked.consumer()
    if trans in ("commit", "rollback"):
        from cirrusmq_dialects.aliyun.halves import decide

        topic = asked.topic("send")
        handles = reading.read_handles(asked.call.body)
        decide(asked.core, topic, asked.caller.account, handles, trans)
        return writing.done(asked.call.id)
    if trans not in ("", "order"):
        raise invalid("trans must be commit or rollback.")
    topic = asked.topic("receive")
    handles = reading.read_handles(asked.call.body)
    codes = _delete(asked.core, topic, name, handles)
    if codes:
        raise HandleErrors(codes)
    return writing.done(asked.call.id)


def _delete(core: Core, topic: Topic, name: str, handles: list[str]) -> dict[str, str]:
    """Deletes messages. Returns the error codes of the handles that deleted nothing."""
    from cirrusmq.queues.receivers import source_with_id
    from cirrusmq.settlement.delete import delete_what_can_be

    codes = {each: "ReceiptHandleError" for each in handles if receipts.decode(each) is None}
    own = [each for each in handles if each not in codes]
    try:
        _, queue = groups.find_group(core, topic, name)
    except SubscriptionNotFound:
        return {**codes, **dict.fromkeys(own, "MessageNotExist")}
    results: Any = {}
    if own:
        results = delete_what_can_be(core, own, lambda each: source_with_id(core, queue, each))
    failed = {
        handle: code_of(result)
        for handle, result in results.items()
        if isinstance(result, CirrusMQError)
    }
    return {**codes, **failed}
