"""Calls on messages of queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.limits import BATCH_MESSAGES, DELAY_SECONDS
from cirrusmq.base.shapes import read_values
from cirrusmq.model.source import Source
from cirrusmq.queues.receivers import source_named
from cirrusmq.receiving.receive_request import Received
from cirrusmq.sending.send import send
from cirrusmq.sending.send_request import SendRequest
from cirrusmq_dialects.asking import RECEIVE, SEND
from cirrusmq_dialects.bodies import shown_body
from cirrusmq_dialects.cmq.asking import Asked, Result
from cirrusmq_dialects.cmq.bodies import check_bodies
from cirrusmq_dialects.cmq.errors import CmqError, of_contract
from cirrusmq_dialects.cmq.reading import (
    integer,
    needed,
    needed_integer,
    needed_numbered,
)
from cirrusmq_dialects.messages import Results, delete, receive

_WAIT, _MAX = (0, 30), (1, BATCH_MESSAGES)
_SOME_FAILED = (6010, 10150, "delete message partially failed")
_ALL_FAILED = (6020, 10290, "batch delete message failed")


def send_message(asked: Asked) -> Result:
    """Sends a message."""
    (message_id,) = _send(asked, [asked.params.get("msgBody", "")])
    return {"msgId": message_id}


def batch_send_message(asked: Asked) -> Result:
    """Sends up to 16 messages, all of them or none."""
    bodies = needed_numbered(asked.params, "msgBody")
    return {"msgList": [{"msgId": each} for each in _send(asked, bodies)]}


def receive_message(asked: Asked) -> Result:
    """Receives a message. Raises CmqError if there is none."""
    return _receive(asked, 1)[0]


def batch_receive_message(asked: Asked) -> Result:
    """Receives up to 16 messages. Raises CmqError if there is none."""
    return {"msgInfoList": _receive(asked, needed_integer(asked.params, "numOfMsg", _MAX))}


def delete_message(asked: Asked) -> Result:
    """Ends a message."""
    (result,) = _delete(asked, [needed(asked.params, "receiptHandle")]).values()
    if isinstance(result, CirrusMQError):
        raise result
    return {}


def batch_delete_message(asked: Asked) -> Result:
    """Ends messages, each separately."""
    results = _delete(asked, needed_numbered(asked.params, "receiptHandle"))
    failed = [
        {**_told(result), "receiptHandle": handle}
        for handle, result in results.items()
        if isinstance(result, CirrusMQError)
    ]
    if not failed:
        return {}
    some = len(failed) < len(results)
    code, module, text = _SOME_FAILED if some else _ALL_FAILED
    raise CmqError(code, module, text, errorList=failed)


def _told(error: CirrusMQError) -> Result:
    shown = of_contract(error, "BatchDeleteMessage")
    return {"code": shown.code, "message": shown.message}


def _send(asked: Asked, bodies: Sequence[str]) -> list[str]:
    queue = asked.queue(SEND)
    check_bodies(bodies)
    delay = integer(asked.params, "delaySeconds", DELAY_SECONDS)
    message: Result = {}
    # An SDK says 0 with every message, and an ordered queue takes no delay at all.
    if delay or (delay is not None and queue.attributes.delay_seconds):
        message["delay_seconds"] = delay
    given = {"messages": [{"body": body, **message} for body in bodies]}
    sent: Any = send(asked.core, queue, read_values(given, SendRequest), asked.caller)
    return [each.id for each in sent]


def _receive(asked: Asked, limit: int) -> list[Result]:
    wait = integer(asked.params, "pollingWaitSeconds", _WAIT)
    given: Result = {"max": limit} if wait is None else {"max": limit, "wait_seconds": wait}

    def find() -> Source:
        return source_named(asked.core, asked.queue(RECEIVE), None)

    received = receive(asked, find, given)
    if not received:
        raise CmqError(7000, 10200, "no message")
    return [_shown(each) for each in received]


def _shown(each: Received) -> Result:
    parcel, index = each.parcel, each.index
    return {
        "msgBody": shown_body(each.message),
        "msgId": parcel.message_id(index),
        "receiptHandle": each.receipt,
        "enqueueTime": parcel.sent_ms // 1000,
        "nextVisibleTime": parcel.visible_ms[index] // 1000,
        "dequeueCount": parcel.tries(index),
        "firstDequeueTime": parcel.first_received_ms[index] // 1000,
    }


def _delete(asked: Asked, handles: Sequence[str]) -> Results:
    return delete(asked.core, asked.queue(RECEIVE), dict.fromkeys(handles))
