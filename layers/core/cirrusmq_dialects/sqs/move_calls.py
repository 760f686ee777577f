"""Message move tasks: redriving the dead letters of a queue, listed and cancelled."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from cirrusmq.base.errors import Conflict, Forbidden, QueueNotFound
from cirrusmq.base.names import FIFO
from cirrusmq.base.shapes import read_values
from cirrusmq.model.queue import Queue
from cirrusmq.model.source import queue_source
from cirrusmq.queues import operations
from cirrusmq.queues.counts import count
from cirrusmq.queues.operations import CANCELLED, Operation
from cirrusmq.queues.queues import dead_letter_sources, get_queue
from cirrusmq_dialects.asking import MANAGE, SHOW
from cirrusmq_dialects.sqs.asking import Asked
from cirrusmq_dialects.sqs.errors import SqsError
from cirrusmq_dialects.sqs.names import arn, ref_in_arn, shown_name
from cirrusmq_dialects.sqs.reading import integer, needed_text, text

Result: TypeAlias = dict[str, Any]
_KIND = "redrive"
_RESULTS = (1, 10)
_SPEED_NAME, _SPEED = "MaxNumberOfMessagesPerSecond", (1, 500)
_HANDLE = re.compile(r"Op-[A-Za-z0-9]{1,64}", re.ASCII)


def start_message_move_task(asked: Asked) -> Result:
    """Moves the messages of a dead-letter queue to their sources, or to one queue."""
    # Most calls move nothing: their cold starts do without.
    from cirrusmq.operations.redrive import RedriveRequest, redrive

    core, account = asked.core, asked.caller.account
    queue = _source(asked, MANAGE)
    speed = integer(asked.members, _SPEED_NAME, _SPEED)
    to = text(asked.members, "DestinationArn")
    request: Result = {}
    if to is not None:
        request["to"] = named = asked.resolved(ref_in_arn("DestinationArn", to, account))
        if ":" in named:
            raise Forbidden("messages move within an account")
        asked.caller.require(("send", "manage"), "queues", named, " (DestinationArn)")
        with _resource("DestinationArn"):
            get_queue(core, account, named)
    if not dead_letter_sources(core, queue):
        raise SqsError(
            "InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue."
        )
    if any(each.state == "running" for each in _tasks(asked, queue)):
        raise SqsError(
            "InvalidParameterValue",
            "There is already a task running. Only one active task is allowed for a source queue"
            " arn at a given time.",
        )
    details = {"waiting": count(core, queue_source(queue, core.now_ms())).active}
    if speed is not None:
        details["per_second"] = speed
    started = redrive(
        core, queue, read_values(request, RedriveRequest), asked.caller.key_id, **details
    )
    return {"TaskHandle": started.id}


def list_message_move_tasks(asked: Asked) -> Result:
    """Returns the newest tasks of a queue within the last seven days."""
    limit = integer(asked.members, "MaxResults", _RESULTS) or 1
    queue = _source(asked, SHOW)
    shown = [_shown(asked, queue, each) for each in _tasks(asked, queue)[:limit]]
    return {"Results": shown}


def cancel_message_move_task(asked: Asked) -> Result:
    """Ends a task that runs; what it moved stays moved."""
    handle, account = needed_text(asked.members, "TaskHandle"), asked.caller.account
    if not _HANDLE.fullmatch(handle):
        raise SqsError("InvalidParameterValue", "Value for parameter TaskHandle is invalid.")
    found = operations.get(asked.core, account, handle)
    asked.caller.require(MANAGE, "queues", found.queue)
    if found.kind != _KIND:
        raise SqsError("ResourceNotFoundException", "Task does not exist.")
    try:
        ended = operations.cancel(asked.core, account, handle)
    except Conflict as error:
        raise SqsError("UnsupportedOperation", "Only active tasks can be cancelled.") from error
    return {"ApproximateNumberOfMessagesMoved": ended.done}


def _source(asked: Asked, rights: Any) -> Queue:
    """The queue in `SourceArn`, which is the caller's own."""
    given = needed_text(asked.members, "SourceArn")
    with _resource("SourceArn"):
        named = asked.resolved(ref_in_arn("SourceArn", given, asked.caller.account))
        queue = asked.find_named(named, rights)
    if queue.account != asked.caller.account:
        raise Forbidden("only its owner may move the messages of a queue")
    return queue


@contextlib.contextmanager
def _resource(name: str) -> Iterator[None]:
    """Turns a missing queue into SqsError ResourceNotFoundException with its parameter."""
    try:
        yield
    except (QueueNotFound, SqsError) as error:
        if isinstance(error, SqsError) and error.shape != "QueueDoesNotExist":
            raise
        text = f"The resource that you specified for the {name} parameter doesn't exist."
        raise SqsError("ResourceNotFoundException", text) from error


def _tasks(asked: Asked, queue: Queue) -> list[Operation]:
    found = operations.of_queue(asked.core, queue)
    return [each for each in found if each.kind == _KIND]


def _shown(asked: Asked, queue: Queue, task: Operation) -> Result:
    shown: Result = {
        "Status": _status(task),
        "SourceArn": arn(asked.region, queue.account, shown_name(queue)),
        "ApproximateNumberOfMessagesMoved": task.done,
        "StartedTimestamp": task.started_ms,
    }
    if task.details.get("to"):
        shown["DestinationArn"] = arn(asked.region, queue.account, _target_name(queue, task))
    if "per_second" in task.details:
        shown[_SPEED_NAME] = task.details["per_second"]
    if "waiting" in task.details:
        shown["ApproximateNumberOfMessagesToMove"] = task.details["waiting"]
    if task.state == "running":
        shown["TaskHandle"] = task.id
    elif shown["Status"] == "FAILED" and task.detail:
        shown["FailureReason"] = task.detail
    return shown


def _target_name(queue: Queue, task: Operation) -> str:
    """The queue that takes the messages; it may be gone by now. Order goes on in a FIFO queue."""
    name: str = task.details["to"]
    return name.removesuffix("_fifo") + FIFO if queue.attributes.ordered else name


def _status(task: Operation) -> str:
    if task.state == "failed":
        return "CANCELLED" if task.detail == CANCELLED else "FAILED"
    return "RUNNING" if task.state == "running" else "COMPLETED"
