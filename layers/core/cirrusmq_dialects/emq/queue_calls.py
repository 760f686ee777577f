"""Calls on queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from cirrusmq.base import limits
from cirrusmq.base.errors import AlreadyExists
from cirrusmq.base.names import RECEIVER_NAME
from cirrusmq.model.queue import Queue, SdkAttributes
from cirrusmq.model.source import queue_source
from cirrusmq.queues.counts import count
from cirrusmq.queues.queues import change_queue, dead_letter_sources, list_queues
from cirrusmq.queues.queues import create_queue as make_queue
from cirrusmq.queues.receiver_management import delete_queue as remove_queue
from cirrusmq.storage import counters
from cirrusmq_dialects.asking import MANAGE, SHOW, all_of
from cirrusmq_dialects.emq import attributes as shapes
from cirrusmq_dialects.emq.asking import Asked, shown_name, text
from cirrusmq_dialects.emq.errors import invalid
from cirrusmq_dialects.emq.structs import of

_Part: TypeAlias = tuple[Callable[[Any, str], dict[str, Any]], Callable[[Queue], Any]]
_PARTS: Mapping[str, _Part] = {
    "queueAttribute": (shapes.read, shapes.show),
    "queueQuota": (shapes.read_quota, shapes.show_quota),
    "redrivePolicy": (shapes.read_redrive, shapes.show_redrive),
}
"""How a part of a queue's attributes is read and shown, by its field in requests and answers."""


def create_queue(asked: Asked) -> Any:
    """Makes a queue; one of the name that exists is refused, as it is there."""
    given, name = asked.request, asked.request.queueName or ""
    full_name = f"{asked.caller.account}/{name}" if name and "/" not in name else name
    owner, native_name = asked.reach(MANAGE, "admin", full_name)
    changes = {**shapes.DEFAULTS, **_read(asked, owner)}
    if given.topicQueue:
        changes["ordered"] = True
    if given.enablePriority:
        partitions = min(changes.get("partitions", 1), limits.PRIORITY_PARTITIONS[1])
        changes |= {"priorities": shapes.LEVELS, "partitions": partitions}
    if given.deadLetterQueue:
        changes[shapes.DEAD_LETTERS] = "true"
    if given.defaultTagName:
        tag = text("defaultTagName", given.defaultTagName, RECEIVER_NAME.limit)
        changes[shapes.DEFAULT_TAG] = tag
    read, texts = shapes.native(changes)
    sdk = SdkAttributes(texts=texts) if texts else None
    queue, created = make_queue(asked.core, owner, native_name, read, sdk=sdk)
    if not created:
        raise AlreadyExists(f"{shown_name(queue)} exists")
    counters.note_use(asked.core, queue.id)
    return of.CreateQueue(
        **_shown(queue),
        deadLetterQueue=bool(given.deadLetterQueue),
        defaultTagName=given.defaultTagName,
    )


def delete_queue(asked: Asked) -> None:
    """Deletes a queue and its messages; only its owner may."""
    remove_queue(asked.core, *asked.reach(MANAGE, "own", asked.request.queueName))


def purge_queue(asked: Asked) -> None:
    """Removes all messages sent before the call."""
    # Most calls purge nothing: their cold starts do without.
    from cirrusmq.operations.purge import purge

    purge(asked.core, asked.queue(MANAGE), asked.caller.key_id)


def set_part(asked: Asked) -> Any:
    """Changes the attributes, the rates or the dead-letter policy, as far as they are given."""
    request, queue = asked.request, asked.queue(MANAGE)
    (part,) = _PARTS.keys() & vars(request)
    changes = _read(asked, queue.account)
    if not changes:
        raise invalid(part, "gives nothing to change")
    queue = change_queue(asked.core, queue.account, queue.name, *shapes.native(changes))
    return type(request)(**_parts(queue, [part]))


def remove_queue_redrive_policy(asked: Asked) -> None:
    """Keeps messages, however often they are received."""
    queue = asked.queue(MANAGE)
    change_queue(asked.core, queue.account, queue.name, *shapes.native({"dead_letter": None}))


def get_queue_info(asked: Asked) -> Any:
    """All attributes, and the numbers of messages."""
    queue = asked.queue(SHOW)
    counts = count(asked.core, queue_source(queue, asked.core.now_ms()))
    takes_letters = shapes.DEAD_LETTERS in queue.sdk_texts
    return of.QueueInfo(
        **_shown(queue),
        queueState=shapes.show_state(queue, counts),
        isDeadLetterQueue=takes_letters,
        defaultTagName=queue.sdk_texts.get(shapes.DEFAULT_TAG, ""),
        sourceQueues=_sources(asked, queue) if takes_letters else None,
    )


def list_queue(asked: Asked) -> Any:
    """The full names of the caller's queues that begin with a prefix."""
    asked.require_whole_account()
    account = asked.caller.account
    owner, slash, name = (asked.request.queueNamePrefix or "").rpartition("/")
    if slash and owner != account:
        return of.Queues(queueName=[])
    found = all_of(list_queues, asked.core, account, name)
    return of.Queues(queueName=[shown_name(each) for each in found])


def list_sources(asked: Asked) -> Any:
    """The queues whose dead letters a queue takes."""
    queue = asked.queue(SHOW, asked.request.dlqName or "")
    return of.DeadLetterSources(dlqName=shown_name(queue), sourceQueues=_sources(asked, queue))


def _read(asked: Asked, owner: str) -> dict[str, Any]:
    """Returns the changes in the parts that a request has. Raises EmqError or Forbidden."""
    changes: dict[str, Any] = {}
    for name, (read, _) in _PARTS.items():
        given = getattr(asked.request, name, None)
        if given is not None:
            changes |= read(given, owner)
    if "dead_letter" in changes:
        # Messages come to a dead-letter queue: `send` or `manage` on it is needed.
        target = changes["dead_letter"]["queue"]
        target = target if owner == asked.caller.account else f"{owner}:{target}"
        asked.caller.require(("send", "manage"), "queues", target, " (redrivePolicy)")
    return changes


def _shown(queue: Queue) -> dict[str, Any]:
    """Returns the fields of a queue that are in both answers about it."""
    return {
        **_parts(queue, _PARTS),
        "enablePriority": queue.attributes.priorities is not None,
        "topicQueue": queue.attributes.ordered,
        "deleteMessageForce": False,
    }


def _parts(queue: Queue, names: Iterable[str]) -> dict[str, Any]:
    return {"queueName": shown_name(queue), **{name: _PARTS[name][1](queue) for name in names}}


def _sources(asked: Asked, queue: Queue) -> list[str]:
    return [shown_name(each) for each in dead_letter_sources(asked.core, queue)]
