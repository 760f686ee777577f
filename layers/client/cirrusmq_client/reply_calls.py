"""Calls of requests and their replies."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from cirrusmq_client.errors import InvalidParameter, ReplyTimedOut
from cirrusmq_client.message_calls import LONGEST_WAIT_SECONDS, MessageCalls, sent_of
from cirrusmq_client.messages import Message, Received
from cirrusmq_client.outcomes import Replied, Sent
from cirrusmq_client.sources import part, queue_path
from cirrusmq_client.steps import Steps, driven

_WAIT_SECONDS = 20.0
_PAUSE_SECONDS = 1.0
"""Pause behind a look that was answered at once, without a wait."""


class ReplyCalls(MessageCalls):
    """Requests: messages of a queue that ask for a reply. Every one has at most one."""

    @driven
    def ask(self, queue: str, message: Message, seconds: int | None = None) -> Steps[Replied]:
        """Sends a message, and waits for its reply.

        Raises ReplyTimedOut at the deadline; nobody receives the message then. `seconds`: time from
        the send to the deadline, 1 to 43,200; None takes the message's `reply_seconds`.
        """
        given = message if seconds is None else replace(message, reply_seconds=seconds)
        if given.reply_seconds is None:
            raise InvalidParameter("seconds: how long to wait is needed", parameter="seconds")
        sent = yield from self._send(queue, [given], {})
        (request,) = map(sent_of, sent.json["messages"])
        while True:
            began = time.monotonic()
            reply = yield from self._await_reply(queue, request, _WAIT_SECONDS)
            if reply is not None:
                return reply
            if time.monotonic() - began < _PAUSE_SECONDS:
                # The account has as many waits as it may have.
                yield partial(self._transport.sleep, _PAUSE_SECONDS)

    @driven
    def await_reply(
        self, queue: str, sent: Sent, wait_seconds: float = _WAIT_SECONDS
    ) -> Steps[Replied | None]:
        """Waits for the reply to a message that was sent. Returns None if there is none in time.

        It may be called again, also by another process of the account, until 5 minutes after the
        deadline; then it raises ReplyNotFound. Raises ReplyTimedOut if no reply came before the
        deadline. `wait_seconds`: 0 to 30.
        """
        return (yield from self._await_reply(queue, sent, wait_seconds))

    @driven
    def reply(
        self,
        queue: str,
        message: Received,
        body: str | bytes,
        attributes: Mapping[str, str | bytes] | None = None,
    ) -> Steps[str]:
        """Replies to a received message, and deletes it. Returns the time of the reply.

        Body and attributes have at most 256 KB. Raises ReplyTooLate if nobody waits any more,
        Conflict if there is another reply, ReceiptExpired if the lease is lost.
        """
        path = f"{queue_path(queue)}/messages/{part(message.id)}/reply"
        reply = Message(body, attributes=attributes or {}).to_json()
        answer = yield from self._call("POST", path, {"receipt": message.receipt, "reply": reply})
        return str(answer.json["replied_at"])

    def _await_reply(self, queue: str, sent: Sent, wait_seconds: float) -> Steps[Replied | None]:
        if sent.reply_by is None:
            raise InvalidParameter("sent: the message asks for no reply", parameter="sent")
        shown = yield from self._call(
            "GET",
            f"{queue_path(queue)}/messages/{part(sent.id)}/reply",
            query={"reply_by": sent.reply_by, "wait_seconds": f"{wait_seconds:.3f}"},
            wait_seconds=min(wait_seconds, LONGEST_WAIT_SECONDS),
        )
        told: dict[str, Any] = shown.json
        if told["state"] == "timed_out":
            raise ReplyTimedOut
        if told["state"] == "waiting":
            return None
        found = Received(told["reply"])
        return Replied(found.body, found.attributes, told["reply"]["replied_at"])
