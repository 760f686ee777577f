"""Half messages: published now, seen by nobody before their producer commits them."""

from __future__ import annotations

from cirrusmq.access.keys import Caller
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.shapes import read_values
from cirrusmq.model.message import OF_SDKS
from cirrusmq.model.parcel import message_id
from cirrusmq.model.topic import Topic
from cirrusmq.publishing.half_messages.checks import Check, HalfReceiveRequest, receive_halves
from cirrusmq.publishing.half_messages.decide import commit, roll_back
from cirrusmq.publishing.half_messages.half import Half
from cirrusmq.publishing.half_messages.prepare import prepare
from cirrusmq.publishing.publish import PublishRequest, TransactionInput
from cirrusmq.runtime.core import Core
from cirrusmq_dialects.aliyun.contents import Draft, shown
from cirrusmq_dialects.aliyun.errors import HandleErrors, code_of

_LOOK_MS = 1_000
"""Milliseconds between two looks of a wait for half messages: they have no wake-up."""


def prepare_half(core: Core, topic: Topic, caller: Caller, draft: Draft) -> Half:
    """Stores a half message.

    A publish names no producer group: all producers of the account are asked for the decision.
    """
    terms = {"check_after_seconds": draft.check_after_seconds}
    given = {"messages": [draft.native], "transaction": terms}
    request = read_values(given, PublishRequest)
    assert isinstance(request.transaction, TransactionInput)
    return prepare(core, topic, caller, request, request.transaction, OF_SDKS)


def half_id(half: Half, index: int = 0) -> str:
    """The id of a message that is not published yet."""
    return message_id(half.id, index)


def consume_halves(
    core: Core, topic: Topic, account: str, limit: int, wait_seconds: float
) -> list[dict[str, str]]:
    """Half messages that wait for a decision."""
    until_ms = core.now_ms() + int(1000 * wait_seconds)
    request = read_values({"max": limit}, HalfReceiveRequest)
    while not (found := receive_halves(core, topic, account, request)):
        now_ms = core.now_ms()
        if now_ms >= until_ms:
            break
        core.wait_until(min(until_ms, now_ms + _LOOK_MS))
    return [fields for check in found for fields in _shown(check, core.now_ms())]


def _shown(check: Check, now_ms: int) -> list[dict[str, str]]:
    """A publish of the native API may have several messages: one handle is all of theirs."""
    half = check.half
    return [
        {
            "MessageId": half_id(half, index),
            **shown(message),
            "ReceiptHandle": half.handle,
            "PublishTime": str(half.prepared_ms),
            "FirstConsumeTime": str(now_ms),
            "NextConsumeTime": str(check.held_until_ms),
            "ConsumedTimes": str(half.checks),
        }
        for index, message in enumerate(check.messages)
    ]


def decide(core: Core, topic: Topic, account: str, handles: list[str], decision: str) -> None:
    """Commits half messages, or rolls them back, each separately. Raises HandleErrors."""
    act = {"commit": commit, "rollback": roll_back}[decision]
    codes: dict[str, str] = {}
    for handle in handles:
        try:
            act(core, topic, account, handle)
        except CirrusMQError as error:
            code = code_of(error)
            codes[handle] = "ReceiptHandleError" if code == "InvalidArgument" else code
    if codes:
        raise HandleErrors(codes)
