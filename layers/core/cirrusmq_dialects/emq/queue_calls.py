"""Calls on queues."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from cirrusmq.access.permissions import authorize
from cirrusmq.base import limits
from cirrusmq.base.names import RECEIVER_NAME
from cirrusmq.base.shapes import read_values
from cirrusmq.model.queue import Queue, QueueInput, change_attributes
from cirrusmq.model.source import queue_source
from cirrusmq.queues.counts import count
from cirrusmq.queues.queues import create_queue as make_queue
from cirrusmq.queues.queues import dead_letter_sources, list_queues, update_queue
from cirrusmq.queues.receiver_management import delete_queue as remove_queue
from cirrusmq.storage import counters
from cirrusmq_dialects.emq import attributes as shapes
from cirrusmq_dialects.emq.asking import MANAGE, PAGE, SHOW, Asked, all_of, shown_name
from cirrusmq_dialects.emq.errors import QUEUE_EXIST, EmqError, invalid
from cirrusmq_dialects.emq.structs import of


def create_queue(asked: Asked) -> Any:
    """Makes a queue; one of the name that exists is refused, as it is there."""
    given, account = asked.request, asked.caller.account
    name = given.queueName or ""
    ref = asked.ref(name if "/" in name or not name else f"{account}/{name}")
    asked.caller.require(MANAGE, "queues", ref)
    owner, native_name = authorize(asked.core, asked.caller, ref, "admin")
    changes = {**shapes.DEFAULTS, **shapes.read(given.queueAttribute)}
    changes |= shapes.read_quota(given.queueQuota)
    if given.redrivePolicy is not None:
        changes["dead_letter"] = _target(asked, given.redrivePolicy, owner)
    if given.topicQueue:
        changes["ordered"] = True
    if given.enablePriority:
        partitions = min(changes.get("partitions", 1), limits.PRIORITY_PARTITIONS[1])
        changes |= {"priorities": shapes.LEVELS, "partitions": partitions}
    texts = shapes.read_receive_number(given.queueAttribute)
    if given.deadLetterQueue:
        texts[shapes.DEAD_LETTERS] = "true"
    if given.defaultTagName:
        if len(given.defaultTagName) > RECEIVER_NAME.limit:
            raise invalid("defaultTagName", f"must have at most {RECEIVER_NAME.limit} characters")
        texts[shapes.DEFAULT_TAG] = given.defaultTagName
    sdk = shapes.with_texts(None, texts)
    read = read_values(changes, QueueInput)
    queue, created = make_queue(asked.core, owner, native_name, read, sdk=sdk)
    if not created:
        raise EmqError(QUEUE_EXIST, f"{shown_name(queue)} exists")
    counters.note_use(asked.core, queue.id)
    return of.CreateQueue(
        **_shown(queue),
        deadLetterQueue=bool(given.deadLetterQueue),
        defaultTagName=given.defaultTagName,
    )


def delete_queue(asked: Asked) -> None:
    """Deletes a queue and its messages; only its owner may."""
    ref = asked.ref(asked.request.queueName)
    asked.caller.require(MANAGE, "queues", ref)
    account, name = authorize(asked.core, asked.caller, ref, "own")
    remove_queue(asked.core, account, name)


def purge_queue(asked: Asked) -> None:
    """Removes all messages sent before the call."""
    # Most calls purge nothing: their cold starts do without.
    from cirrusmq.operations.purge import purge

    purge(asked.core, asked.queue(MANAGE), asked.caller.key_id)


def set_queue_attribute(asked: Asked) -> Any:
    """Changes the attributes that are given."""
    given = asked.request.queueAttribute
    changes, texts = shapes.read(given), shapes.read_receive_number(given)
    queue = _changed(asked, changes, texts)
    return of.QueueAttributes(queueName=shown_name(queue), queueAttribute=shapes.show(queue))


def set_queue_quota(asked: Asked) -> Any:
    """Changes the rates that are given."""
    queue = _changed(asked, shapes.read_quota(asked.request.queueQuota))
    return of.QueueQuotas(queueName=shown_name(queue), queueQuota=shapes.show_quota(queue))


def get_queue_info(asked: Asked) -> Any:
    """All attributes, and the numbers of messages."""
    queue = asked.queue(SHOW)
    counts = count(asked.core, queue_source(queue, asked.core.now_ms()))
    takes_letters = bool(shapes.text_of(queue, shapes.DEAD_LETTERS))
    return of.QueueInfo(
        **_shown(queue),
        queueState=shapes.show_state(queue.created_ms, queue.modified_ms, counts),
        isDeadLetterQueue=takes_letters,
        defaultTagName=shapes.text_of(queue, shapes.DEFAULT_TAG),
        sourceQueues=_sources(asked, queue) if takes_letters else None,
    )


def list_queue(asked: Asked) -> Any:
    """The full names of the caller's queues that begin with a prefix."""
    asked.require_whole_account()
    account = asked.caller.account
    prefix = asked.request.queueNamePrefix or ""
    owner, slash, rest = prefix.partition("/")
    if slash and owner != account:
        return of.Queues(queueName=[])
    named = rest if slash else prefix
    found = all_of(lambda cursor: list_queues(asked.core, account, named, PAGE, cursor))
    return of.Queues(queueName=[shown_name(each) for each in found])


def set_queue_redrive_policy(asked: Asked) -> Any:
    """Names the queue that takes dead letters."""
    queue = asked.queue(MANAGE)
    policy = _target(asked, asked.request.redrivePolicy, queue.account)
    queue = _changed(asked, {"dead_letter": policy})
    return of.QueueRedrive(queueName=shown_name(queue), redrivePolicy=shapes.show_redrive(queue))


def remove_queue_redrive_policy(asked: Asked) -> None:
    """Keeps messages, however often they are received."""
    _changed(asked, {"dead_letter": None})


def list_sources(asked: Asked) -> Any:
    """The queues whose dead letters a queue takes."""
    queue = asked.queue(SHOW, asked.request.dlqName or "")
    return of.DeadLetterSources(dlqName=shown_name(queue), sourceQueues=_sources(asked, queue))


def _shown(queue: Queue) -> dict[str, Any]:
    """Returns the fields of a queue that are in both answers about it."""
    return {
        "queueName": shown_name(queue),
        "queueAttribute": shapes.show(queue),
        "queueQuota": shapes.show_quota(queue),
        "redrivePolicy": shapes.show_redrive(queue),
        "enablePriority": queue.attributes.priorities is not None,
        "topicQueue": queue.attributes.ordered,
        "deleteMessageForce": False,
    }


def _sources(asked: Asked, queue: Queue) -> list[str]:
    return [shown_name(each) for each in dead_letter_sources(asked.core, queue)]


def _target(asked: Asked, given: Any, account: str) -> dict[str, Any]:
    """Messages come to a dead-letter queue: `send` or `manage` on it is needed."""
    policy = shapes.read_redrive(given, account)
    own = account == asked.caller.account
    target = policy["queue"] if own else f"{account}:{policy['queue']}"
    asked.caller.require(("send", "manage"), "queues", target, " (redrivePolicy)")
    return policy


def _changed(asked: Asked, changes: dict[str, Any], texts: dict[str, str] | None = None) -> Queue:
    """Changes a queue. Returns it as it is then."""
    queue = asked.queue(MANAGE)
    if not changes and not texts:
        raise invalid("the request", "gives nothing to change")
    core, read = asked.core, read_values(changes, QueueInput)
    core.settings.check_message_bytes(read.max_message_bytes)

    def change(before: Queue) -> Queue:
        sdk = shapes.with_texts(before.sdk, texts or {})
        return replace(change_attributes(before, read, core.now_ms()), sdk=sdk)

    return update_queue(core, queue.account, queue.name, change)
