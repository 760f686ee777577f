"""Calls on tags: receivers of a queue, each with a filter of one attribute or without."""

from __future__ import annotations

import re
from typing import Any

from cirrusmq.base.errors import AlreadyExists
from cirrusmq.base.limits import MESSAGES_PER_SECOND
from cirrusmq.base.shapes import read_values
from cirrusmq.base.timestamps import format_time
from cirrusmq.model.described import check_labels
from cirrusmq.model.queue import Queue, ReceiverChangeInput, ReceiverInput
from cirrusmq.model.source import queue_source
from cirrusmq.queues import receiver_management, receivers
from cirrusmq.queues.counts import count
from cirrusmq.queues.receivers import Receiver
from cirrusmq_dialects.emq import attributes as shapes
from cirrusmq_dialects.emq.asking import MANAGE, SHOW, Asked, integer, shown_name
from cirrusmq_dialects.emq.contents import typed
from cirrusmq_dialects.emq.errors import INDEX_NOT_UNIQUE, EmqError, invalid
from cirrusmq_dialects.emq.structs import of

_TIMES = (0, 253_402_300_799_999)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_SQL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*) = '((?:[^']|'')*)'", re.ASCII)


def create_tag(asked: Asked) -> Any:
    """Adds a tag; one of the name that exists is refused, be it the default one.

    put ──────────────> rate and attributes ──> answer
        stops here: the same call again finds a tag that was never changed, and goes on
    """
    queue, given, core = asked.queue(MANAGE), asked.request, asked.core
    _check_name(queue, given.tagName or "")
    start = integer("startTimestamp", given.startTimestamp, _TIMES)
    request: dict[str, Any] = {"filter": _filter(given)}
    if start:
        request["start"] = format_time(start)
    rate = integer("readQPSQuota", given.readQPSQuota or None, MESSAGES_PER_SECOND)
    further = {"receive_rate": rate, "labels": given.userAttributes or None}
    further = {name: value for name, value in further.items() if value is not None}
    change = read_values(further, ReceiverChangeInput)
    check_labels(given.userAttributes or {})
    try:
        receiver, created = receiver_management.put_receiver(
            *(core, queue, given.tagName or "", read_values(request, ReceiverInput)),
            by=asked.caller.key_id,
        )
    except AlreadyExists as error:
        raise _taken(given.tagName) from error
    if not created and (receiver.modified_ms or not further):
        raise _taken(receiver.name)
    if further:
        receiver = receiver_management.change_receiver(core, queue, receiver.name, change)
    return of.CreateTag(
        queueName=shown_name(queue),
        tagName=receiver.name,
        startTimestamp=receiver.start_ms,
        readQPSQuota=receiver.receive_rate,
    )


def delete_tag(asked: Asked) -> None:
    """Removes a tag and its progress."""
    queue = asked.queue(MANAGE)
    receiver_management.delete_receiver(asked.core, queue, asked.request.tagName or "")


def get_tag_info(asked: Asked) -> Any:
    """A tag's attributes and counts; without a name the default one's."""
    core, queue = asked.core, asked.queue(SHOW)
    name = native_tag(queue, asked.request.tagName)
    if name is None:
        counts = count(core, queue_source(queue, core.now_ms()))
        return of.TagInfo(
            queueName=shown_name(queue),
            tagName=shapes.text_of(queue, shapes.DEFAULT_TAG),
            tagState=shapes.show_state(queue.created_ms, queue.modified_ms, counts),
            startTimestamp=queue.created_ms,
            readQPSQuota=queue.attributes.receive_rate,
        )
    receiver = receivers.get_receiver(core, queue, name)
    counts = count(core, receivers.receiver_source(core, queue, receiver))
    attribute, value = _shown_filter(receiver)
    return of.TagInfo(
        queueName=shown_name(queue),
        tagName=receiver.name,
        tagState=shapes.show_state(receiver.created_ms, receiver.modified_ms, counts),
        startTimestamp=receiver.start_ms,
        readQPSQuota=receiver.receive_rate,
        attributeName=attribute,
        attributeValue=value,
        userAttributes=dict(receiver.labels),
    )


def list_tag(asked: Asked) -> Any:
    """The names of a queue's tags, without the default one."""
    queue = asked.queue(SHOW)
    names = [each.name for each in receivers.list_receivers(asked.core, queue)]
    return of.Tags(queueName=shown_name(queue), tagName=names)


def native_tag(queue: Queue, tag: str | None) -> str | None:
    """Returns the receiver that a tag is, or None for the default one."""
    names = ("", receivers.DEFAULT, shapes.text_of(queue, shapes.DEFAULT_TAG))
    return None if tag is None or tag in names else tag


def source_of_tag(asked: Asked, queue: Queue, tag: str | None) -> Any:
    """Returns the source of a tag. Raises ReceiverNotFound."""
    return receivers.source_named(asked.core, queue, native_tag(queue, tag))


def _check_name(queue: Queue, name: str) -> None:
    """Raises EmqError for a name of the default tag, in any case: it finds no other tag."""
    default = shapes.text_of(queue, shapes.DEFAULT_TAG)
    if name and name.lower() in (receivers.DEFAULT, default.lower()):
        raise _taken(name)


def _taken(name: str) -> EmqError:
    return EmqError(INDEX_NOT_UNIQUE, f"tagName: the tag {name} exists")


def _filter(given: Any) -> dict[str, str] | None:
    """Returns the filter by one attribute with one text, if it is given."""
    if not given.attributeName:
        return None
    if not _NAME.fullmatch(given.attributeName):
        raise invalid("attributeName", "must be a letter or '_', then letters, digits and '_'")
    value = typed("attributeValue", given.attributeValue or of.MessageAttribute()).value
    if not isinstance(value, str):
        raise invalid("attributeValue", "must be a STRING: tags do not filter by bytes")
    quoted = value.replace("'", "''")
    return {"sql": f"{given.attributeName} = '{quoted}'"}


def _shown_filter(receiver: Receiver) -> tuple[str | None, Any]:
    """Returns the attribute and the value of a filter that `create_tag` made, else Nones."""
    found = _SQL.fullmatch(str((receiver.filter or {}).get("sql", "")))
    if found is None:
        return None, None
    value = found[2].replace("''", "'")
    return found[1], of.MessageAttribute(type="STRING", stringValue=value)
