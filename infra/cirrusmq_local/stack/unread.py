"""Gives messages in an answer that nobody reads back at once, as if they were not received.

    receive ── claims ── the client has gone, or takes nothing of the answer ── given back, untried
                         └ else they stay leased for their visibility timeout

An answer that went into the machine's buffers counts as read: its fate is not known.
"""

from __future__ import annotations

import gzip
import json
import logging
import re
from collections.abc import Sequence

from cirrusmq.base import limits
from cirrusmq.runtime.core import Core
from cirrusmq.settlement.visibility import GiveBackRequest, give_back
from cirrusmq.subscriptions.sources import source_of_resource
from cirrusmq_local.cloud.events import Answer, Request

_ACTION = re.compile(rb"(?:^|[?&])Action=(?:Batch)?ReceiveMessage(?:&|$)")
_ELEMENT = re.compile(r"<ReceiptHandle>([^<]+)</ReceiptHandle>")
"""The receipt in XML. A message cannot contain this: a sender's text is escaped."""
_EMQ_PATH, _EMQ_HEAD_BYTES = "/v1/api/message", 32
_EMQ_TYPE, _EMQ_RECEIVE = "application/x-thrift-binary", "receiveMessage"
_WRAPPERS = ("ReceiveMessageResponse", "ReceiveMessageResult")
"""Members around all others, in JSON answers of SQS's query protocol."""
_LISTS = ("messages", "Messages", "msgInfoList")
_NAMES = ("receipt", "ReceiptHandle", "receiptHandle")

_log = logging.getLogger(__name__)


def receives(request: Request, role: str) -> bool:
    """Returns True if a request receives messages, so that it ends when its client goes.

    `role`: the function's folder.
    """
    if role != "dialects":
        return role == "receive"
    target = dict(request.headers).get("x-amz-target", "")
    if target:
        return target.endswith(".ReceiveMessage")
    if request.raw_path.endswith(_EMQ_PATH):
        return _EMQ_RECEIVE.encode() in request.body[:_EMQ_HEAD_BYTES]
    if request.raw_path.startswith("/topics/"):
        return request.method == "GET"
    return any(map(_ACTION.search, (request.query.encode(), request.body)))


def receipts_of(answer: Answer) -> list[str]:
    """Returns the receipts in an answer to a receive, of any dialect; none for an error."""
    if answer.status != 200:
        return []
    body, headers = answer.body, {(name.lower(), value) for name, value in answer.headers}
    if ("content-type", _EMQ_TYPE) in headers:
        return receipts_of_emq(body)
    if ("content-encoding", "gzip") in headers:
        body = gzip.decompress(body)
    if body.startswith(b"<"):
        return _ELEMENT.findall(body.decode())
    try:
        told = json.loads(body)
    except ValueError:
        return []
    for name in _WRAPPERS:
        if isinstance(told, dict):
            told = told.get(name, told)
    if not isinstance(told, dict):
        return []
    found = next((told[name] for name in _LISTS if name in told), [told])
    return [each[name] for each in found or () for name in _NAMES if name in each]


def receipts_of_emq(body: bytes) -> list[str]:
    """Returns the receipts in an answer of EMQ's to a receive; none for another one."""
    # Few programs are EMQ's.
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.transport.TTransport import TMemoryBuffer

    from cirrusmq_dialects.emq.contract import result_of

    reader, result = TBinaryProtocol(TMemoryBuffer(body)), result_of("list<Received>")()
    try:
        if reader.readMessageBegin()[0] != _EMQ_RECEIVE:
            return []
        result.read(reader)
    except EOFError:
        return []
    return [each.receiptHandle for each in result.success or ()]


def give_back_unread(core: Core, receipts: Sequence[str]) -> None:
    """Gives messages back to the queue; this receive does not count as an attempt."""
    for first in range(0, len(receipts), limits.BATCH_MESSAGES):
        some = list(receipts[first : first + limits.BATCH_MESSAGES])
        request = GiveBackRequest(receipts=some, delay_seconds=0, tried=False)
        try:
            give_back(core, request, lambda source_id: source_of_resource(core, source_id))
        except Exception:
            _log.warning("%d messages whose client has gone stay held", len(some), exc_info=True)
