"""Calls on queues."""

from __future__ import annotations

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
from cirrusmq_dialects.emq.asking import Asked, Result, shown_name, text
from cirrusmq_dialects.emq.errors import invalid


def create_queue(asked: Asked) -> Result:
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
    return {
        **_shown(queue),
        "deadLetterQueue": bool(given.deadLetterQueue),
        "defaultTagName": given.defaultTagName,
    }


def delete_queue(asked: Asked) -> None:
    """Deletes a queue and its messages; only its owner may."""
    remove_queue(asked.core, *asked.reach(MANAGE, "own", asked.request.queueName))


def purge_queue(asked: Asked) -> None:
    """Removes all messages sent before the call."""
    # Most calls purge nothing: their cold starts do without.
    from cirrusmq.operations.purge import purge

    purge(asked.core, asked.queue(MANAGE), asked.caller.key_id)


def set_part(asked: Asked) -> Result:
    """Changes the attributes, the rates or the dead-letter policy, as far as they are given."""
    queue = asked.queue(MANAGE)
    name, part = vars(asked.request)
    changes = _read(asked, queue.account)
    if not changes:
        raise invalid(part, "gives nothing to change")
    queue = change_queue(asked.core, queue.account, queue.name, *shapes.native(changes))
    shown = shapes.show(queue)
    return {name: shown[name], part: shown[part]}


def remove_queue_redrive_policy(asked: Asked) -> None:
    """Keeps messages, however often they are received."""
    queue = asked.queue(MANAGE)
    change_queue(asked.core, queue.account, queue.name, *shapes.native({"dead_letter": None}))


def get_queue_info(asked: Asked) -> Result:
    """All attributes, and the numbers of messages."""
    queue = asked.queue(SHOW)
    counts = count(asked.core, queue_source(queue, asked.core.now_ms()))
    takes_letters = shapes.DEAD_LETTERS in queue.sdk_texts
    return {
        **_shown(queue),
        "queueState": shapes.show_state(queue, counts),
        "isDeadLetterQueue": takes_letters,
        "defaultTagName": queue.sdk_texts.get(shapes.DEFAULT_TAG, ""),
        "sourceQueues": _sources(asked, queue) if takes_letters else None,
    }


def list_queue(asked: Asked) -> Result:
    """The full names of the caller's queues that begin with a prefix."""
    asked.require_whole_account()
    account = asked.caller.account
    owner, slash, name = (asked.request.queueNamePrefix or "").rpartition("/")
    if slash and owner != account:
        return {"queueName": []}
    found = all_of(list_queues, asked.core, account, name)
    return {"queueName": [shown_name(each) for each in found]}


def list_sources(asked: Asked) -> Result:
    """The queues whose dead letters a queue takes."""
    queue = asked.queue(SHOW, asked.request.dlqName or "")
    return {"dlqName": shown_name(queue), "sourceQueues": _sources(asked, queue)}


def _read(asked: Asked, owner: str) -> Result:
    """Returns the changes in the parts that a request has. Raises EmqError or Forbidden."""
    changes = shapes.read(asked.request, owner)
    if "dead_letter" in changes:
        # Messages come to a dead-letter queue: `send` or `manage` on it is needed.
        target = changes["dead_letter"]["queue"]
        target = target if owner == asked.caller.account else f"{owner}:{target}"
        asked.caller.require(("send", "manage"), "queues", target, " (redrivePolicy)")
    return changes


def _shown(queue: Queue) -> Result:
    """Returns the fields of a queue that are in both answers about it."""
    return {
        **shapes.show(queue),
        "enablePriority": queue.attributes.priorities is not None,
        "topicQueue": queue.attributes.ordered,
        "deleteMessageForce": False,
    }


def _sources(asked: Asked, queue: Queue) -> list[str]:
    return [shown_name(each) for each in dead_letter_sources(asked.core, queue)]
