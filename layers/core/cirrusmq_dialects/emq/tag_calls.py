"""Calls on tags: receivers of a queue, each with a filter of one attribute or without."""

from __future__ import annotations

import re
from typing import Any

from cirrusmq.base.errors import AlreadyExists
from cirrusmq.base.limits import MESSAGES_PER_SECOND
from cirrusmq.base.shapes import read_values
from cirrusmq.base.timestamps import format_time
from cirrusmq.model.described import check_labels
from cirrusmq.model.queue import ReceiverChangeInput, ReceiverInput
from cirrusmq.queues import receiver_management, receivers
from cirrusmq.queues.counts import count
from cirrusmq_dialects.asking import MANAGE, SHOW
from cirrusmq_dialects.emq import attributes as shapes
from cirrusmq_dialects.emq.asking import Asked, Result, integer, shown_name
from cirrusmq_dialects.emq.contents import typed
from cirrusmq_dialects.emq.errors import INDEX_NOT_UNIQUE, EmqError, invalid

_TIMES = (0, 253_402_300_799_999)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_SQL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*) = '((?:[^']|'')*)'", re.ASCII)


def create_tag(asked: Asked) -> Result:
    """Adds a tag; one of the name that exists is refused, be it the default one.

    put ──────────────> rate and attributes ──> answer
        stops here: the same call again finds a tag that was never changed, and goes on
    """
    queue, given, core = asked.queue(MANAGE), asked.request, asked.core
    name, by = given.tagName or "", asked.caller.key_id
    taken = EmqError(INDEX_NOT_UNIQUE, f"tagName: the tag {name} exists")
    # In any case of letters, as names of receivers are compared.
    if name and name.lower() in map(str.lower, shapes.default_tags(queue)):
        raise taken
    start = integer("startTimestamp", given.startTimestamp, _TIMES)
    request: dict[str, Any] = {"filter": _filter(given)}
    if start:
        request["start"] = format_time(start)
    rate = integer("readQPSQuota", given.readQPSQuota or None, MESSAGES_PER_SECOND)
    further = {"receive_rate": rate} if rate else {}
    further |= {"labels": given.userAttributes} if given.userAttributes else {}
    change = read_values(further, ReceiverChangeInput)
    check_labels(given.userAttributes or {})
    wanted = read_values(request, ReceiverInput)
    try:
        receiver, created = receiver_management.put_receiver(core, queue, name, wanted, by=by)
    except AlreadyExists as error:
        raise taken from error
    if not created and (receiver.modified_ms or not further):
        raise taken
    if further:
        receiver = receiver_management.change_receiver(core, queue, name, change)
    return {
        "queueName": shown_name(queue),
        "tagName": name,
        "startTimestamp": receiver.start_ms,
        "readQPSQuota": receiver.receive_rate,
    }


def delete_tag(asked: Asked) -> None:
    """Removes a tag and its progress."""
    queue = asked.queue(MANAGE)
    receiver_management.delete_receiver(asked.core, queue, asked.request.tagName or "")


def get_tag_info(asked: Asked) -> Result:
    """A tag's attributes and counts; without a name the default one's."""
    core, queue = asked.core, asked.queue(SHOW)
    name = shapes.native_tag(queue, asked.request.tagName)
    source = receivers.source_named(core, queue, name)
    shown: Result = {"queueName": shown_name(queue), "readQPSQuota": source.receive_rate}
    if name is None:
        held: Any = queue
        named = queue.sdk_texts.get(shapes.DEFAULT_TAG, "")
        shown |= {"tagName": named, "startTimestamp": queue.created_ms}
    else:
        held = receivers.get_receiver(core, queue, name)
        shown |= {"tagName": name, "startTimestamp": held.start_ms, "userAttributes": held.labels}
        found = _SQL.fullmatch(str((held.filter or {}).get("sql", "")))
        if found is not None:  # it is one that `create_tag` made
            value = {"type": "STRING", "stringValue": found[2].replace("''", "'")}
            shown |= {"attributeName": found[1], "attributeValue": value}
    return {**shown, "tagState": shapes.show_state(held, count(core, source))}


def list_tag(asked: Asked) -> Result:
    """The names of a queue's tags, without the default one."""
    queue = asked.queue(SHOW)
    names = [each.name for each in receivers.list_receivers(asked.core, queue.id)]
    return {"queueName": shown_name(queue), "tagName": names}


def _filter(given: Any) -> dict[str, str] | None:
    """Returns the filter by one attribute with one text, if it is given."""
    if not given.attributeName:
        return None
    if not _NAME.fullmatch(given.attributeName):
        raise invalid("attributeName", "must be a letter or '_', then letters, digits and '_'")
    value = typed("attributeValue", given.attributeValue).value
    if not isinstance(value, str):
        raise invalid("attributeValue", "must be a STRING: tags do not filter by bytes")
    quoted = value.replace("'", "''")
    return {"sql": f"{given.attributeName} = '{quoted}'"}
