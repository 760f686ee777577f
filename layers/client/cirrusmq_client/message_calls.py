"""Calls that send, receive and settle messages."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from cirrusmq_client.answers import FoundMessage
from cirrusmq_client.calls import Calls
from cirrusmq_client.checks import check_mapping, texts
from cirrusmq_client.errors import (
    CirrusMQError,
    InvalidParameter,
    ReceiptExpired,
    Unavailable,
    error_of,
)
from cirrusmq_client.messages import Message, Received, messages_of
from cirrusmq_client.outcomes import Exchanged, Failed, Outcome, Selected, Sent
from cirrusmq_client.sources import Queue, Source, part, queue_path, source_of
from cirrusmq_client.steps import Entries, Entry, Steps, driven, listed
from cirrusmq_client.times import to_moment
from cirrusmq_client.transport import Reply

LONGEST_WAIT_SECONDS = 30.0


class MessageCalls(Calls):
    """Calls on messages of queues and pull subscriptions, at most 16 in a call.

    A `source` is a queue's name, a `Queue` or a `Subscription`. The methods raise the contract's
    errors, subclasses of CirrusMQError.
    """

    @driven
    def send(self, queue: str, messages: Sequence[Message]) -> Steps[list[Sent]]:
        """Sends all messages or none, in this order. Returns the id and time of each.

        A call whose answer was lost is repeated, and stores nothing twice.
        """
        reply = yield from self._send(queue, messages, {})
        return [sent_of(entry) for entry in reply.json["messages"]]

    @driven
    def send_each(
        self, queue: str, messages: Sequence[Message]
    ) -> Steps[list[Sent | CirrusMQError]]:
        """Sends the valid messages. Returns each one's id and time, or its error, in order."""
        reply = yield from self._send(queue, messages, {"atomic": False})
        return [
            error_of(entry["error"]) if "error" in entry else sent_of(entry)
            for entry in reply.json["messages"]
        ]

    @driven
    def receive(
        self,
        source: str | Source,
        max_messages: int = 1,
        *,
        wait_seconds: float | None = None,
        visibility_timeout_seconds: int | None = None,
        group: str | None = None,
    ) -> Steps[list[Received]]:
        """Receives 0 to 16 messages, each with a lease. Returns none if no message came in time.

        If the answer is lost, the call is repeated for the same messages, with the same receipts.

        `wait_seconds`: time of the long poll, 0 to 30; None takes the queue's.
        `visibility_timeout_seconds`: of the leases; None takes the message's or the queue's.
        `group`: only messages of this group, from an ordered or a fair queue; None takes any.
        """
        path, body, longest = _wanted(
            source, max_messages, wait_seconds, visibility_timeout_seconds
        )
        if group is not None:
            body["group"] = group

        def make(attempt: str) -> Steps[Reply]:
            shown = body | {"attempt": attempt}
            again = shown | {"repeat": True}
            return self._call("POST", path, shown, repeated_body=again, wait_seconds=longest)

        return _messages((yield from self._with_attempt(make)), source)

    @driven
    def receive_where(
        self,
        source: str | Source,
        name: str,
        value: str | bytes,
        max_messages: int = 1,
        *,
        after: str | None = None,
        visibility_timeout_seconds: int | None = None,
    ) -> Steps[Selected]:
        """Receive up to 16 messages with this attribute, of a queue without groups.

        A call looks at a bounded part of the queue, and waits for nothing. Give the answer's
        `after` to the next call, until it has seen all. If an answer is lost, its
        messages come again when their lease is over.
        """
        path, body, _ = _wanted(source, max_messages, None, visibility_timeout_seconds)
        told = value if isinstance(value, str) else {"base64": base64.b64encode(value).decode()}
        body["where"] = {"name": name, "value": told}
        if after is not None:
            body["after"] = after
        reply = yield from self._call("POST", path, body)
        shown = reply.json
        return Selected(_messages(reply, source), shown["seen_all"], shown.get("after"))

    @driven
    def delete_and_receive(
        self,
        source: str | Source,
        receipts: Sequence[str],
        max_messages: int = 1,
        *,
        wait_seconds: float | None = None,
        visibility_timeout_seconds: int | None = None,
    ) -> Steps[Exchanged]:
        """Deletes messages as `delete` does, then receives as `receive` does, in one call.

        Returns the messages and the deletes' outcome. If it raises, nothing was deleted, or the
        answer was lost.
        """
        path, body, longest = _wanted(
            source, max_messages, wait_seconds, visibility_timeout_seconds
        )
        deletes = {"delete": texts("receipts", receipts)}

        def make(attempt: str) -> Steps[Exchanged]:
            shown = body | {"attempt": attempt}
            again = shown | {"repeat": True}
            reply = yield from self._call(
                *("POST", path, shown | deletes),
                repeated_body=again | deletes,
                wait_seconds=longest,
            )
            deleted = _ended(reply, "deleted")
            if "error" not in reply.json:
                return Exchanged(_messages(reply, source), deleted)
            error = error_of(reply.json["error"])
            if isinstance(error, Unavailable):
                # As after a 503: it may have claimed messages, so the same ones are requested.
                try:
                    more = yield from self._call("POST", path, again, wait_seconds=longest)
                except CirrusMQError as later:
                    return Exchanged([], deleted, later)
                return Exchanged(_messages(more, source), deleted)
            return Exchanged([], deleted, error)

        return (yield from self._with_attempt(make))

    @driven
    def look_up(
        self, queue: str | Queue, message_id: str, *, group: str | None = None, body: bool = False
    ) -> Steps[FoundMessage]:
        """Returns a message's state by its id. Raises MessageNotFound.

        `group`: the message's group, in an ordered or fair queue, which makes the search cheaper.
        `body`: True adds the message's content.
        """
        source = Queue(queue) if isinstance(queue, str) else queue
        shown = yield from self._get(
            f"{source.path}/messages/{part(message_id)}",
            receiver=source.receiver,
            group=group,
            body="true" if body else None,
        )
        return cast(FoundMessage, shown)

    @driven
    def cancel(
        self, queue: str | Queue, message_id: str, *, group: str | None = None
    ) -> Steps[None]:
        """Cancels a message that was never received. Raises Conflict if it was, or MessageNotFound.

        `queue`: with a receiver, cancels only the receiver's message. `group`: as for `look_up`, in
        a fair queue.
        """
        source = Queue(queue) if isinstance(queue, str) else queue
        path = f"{source.path}/messages/{part(message_id)}"
        yield from self._call("DELETE", path, query=_of(source, group))

    @driven
    def reschedule(
        self,
        queue: str | Queue,
        message_id: str,
        *,
        delay_seconds: int | None = None,
        deliver_at: datetime | str | float | None = None,
        group: str | None = None,
    ) -> Steps[FoundMessage]:
        """Reschedules a message that was never received. Returns its state.

        Raises Conflict if it was received, or MessageNotFound.

        `delay_seconds`: from now; from the last try if an answer was lost. `deliver_at`: a time
        instead; a number is in seconds since the epoch. `group`: as for `look_up`, in a fair queue.
        """
        source = Queue(queue) if isinstance(queue, str) else queue
        body: dict[str, Any] = {}
        if delay_seconds is not None:
            body["delay_seconds"] = delay_seconds
        if deliver_at is not None:
            body["deliver_at"] = to_moment(deliver_at)
        path = f"{source.path}/messages/{part(message_id)}"
        reply = yield from self._call("PATCH", path, body, query=_of(source, group))
        return cast(FoundMessage, reply.json)

    @driven
    def delete(self, source: str | Source, receipts: Sequence[str]) -> Steps[Outcome]:
        """Deletes messages. Returns the outcome of each receipt.

        After a lost answer, an expired receipt counts as deleted.
        """
        return (
            yield from self._settle(
                source, "delete", {"receipts": texts("receipts", receipts)}, "deleted"
            )
        )

    @driven
    def dead_letter(
        self, source: str | Source, receipts: Sequence[str], reason: str | None = None
    ) -> Steps[Outcome]:
        """Moves messages to the dead-letter queue. Returns the outcome of each receipt.

        Without a dead-letter queue, a receipt fails with NoDeadLetterQueue. `reason`: a text of at
        most 256 characters.
        """
        body: dict[str, Any] = {"receipts": texts("receipts", receipts)}
        if reason is not None:
            body["reason"] = reason
        return (yield from self._settle(source, "dead-letter", body, "deleted"))

    @driven
    def give_back(
        self,
        source: str | Source,
        receipts: Sequence[str],
        delay_seconds: int | None = None,
        *,
        tried: bool = True,
    ) -> Steps[Outcome]:
        """Gives messages back before their leases expire. Returns the outcome of each receipt.

        `delay_seconds`: time until they can be received again; None is the retry policy's next
        wait. `tried`: False if no handler started. Then there is no wait, and this receive is not
        counted. An older service counts it.
        """
        body: dict[str, Any] = {"receipts": texts("receipts", receipts)}
        if delay_seconds is not None:
            body["delay_seconds"] = delay_seconds
        if tried:
            return (yield from self._settle(source, "give-back", body, "given_back"))
        untried = body | {"tried": False}
        try:
            return (yield from self._settle(source, "give-back", untried, "given_back"))
        except InvalidParameter as error:
            if error.parameter != "tried":
                raise
        at_once = {"delay_seconds": 0} | body
        return (yield from self._settle(source, "give-back", at_once, "given_back"))

    @driven
    def change_visibility(self, source: str | Source, seconds: Mapping[str, int]) -> Steps[Outcome]:
        """Changes the ends of leases. Returns the outcome of each receipt; receipts stay valid.

        `seconds`: receipt -> seconds from now to the lease's end.
        """
        check_mapping("seconds", seconds)
        entries = [
            {"receipt": receipt, "visibility_timeout_seconds": timeout}
            for receipt, timeout in seconds.items()
        ]
        path = source_of(source).path + "/messages/visibility"
        return _outcome((yield from self._call("POST", path, {"entries": entries})), "changed")

    @listed
    def peek_all(
        self, source: str | Source, dead_letter: Mapping[str, Any] | None = None
    ) -> Entries[Received]:
        """Iterates over active messages, without receipts; claims none.

        A message that moves during the iteration may come twice.

        `dead_letter`: selects dead letters by their notes: `reason`, `source_queue`, `receiver`,
        `subscription`, `older_than_seconds`, `younger_than_seconds`. None takes all messages.
        """
        named, path = str(source_of(source)), source_of(source).path + "/messages/peek"
        body: dict[str, Any] | None = {"max": 16}
        if dead_letter:
            body = {"max": 16, "dead_letter": dict(dead_letter)}
        while body is not None:
            page = yield from self._post_safely(path, body)
            for message in page["messages"]:
                yield Entry(Received(message, named))
            body = body | {"cursor": page["cursor"]} if "cursor" in page else None

    @driven
    def peek(self, source: str | Source, max_messages: int = 1) -> Steps[list[Received]]:
        """Returns up to `max_messages` active messages, without receipts; claims none."""
        path = source_of(source).path + "/messages/peek"
        reply = yield from self._call("POST", path, {"max": max_messages})
        return _messages(reply, source)

    def _send(
        self, queue: str, messages: Sequence[Message], options: dict[str, Any]
    ) -> Steps[Reply]:
        path = queue_path(queue) + "/messages"
        identified = [_identify(message) for message in messages_of(messages)]
        body = {"messages": [message.to_json() for message in identified], **options}
        if all(message.deduplication_id is not None for message in identified):
            return (yield from self._call("POST", path, body))
        return (
            yield from self._with_attempt(
                lambda attempt: self._call("POST", path, body | {"attempt": attempt})
            )
        )

    def _settle(
        self, source: str | Source, action: str, body: Mapping[str, Any], done: str
    ) -> Steps[Outcome]:
        path = f"{source_of(source).path}/messages/{action}"
        reply = yield from self._call("POST", path, body)
        return _ended(reply, done)


_EXPIRED = ReceiptExpired.__name__


def _identify(message: Message) -> Message:
    """Returns a message that can be sent again.

    Ordered queues accept no `attempt`. Only their messages need a group, so a message with a group
    gets a deduplication id, which every queue accepts. Ordered queues accept no `replace` either.
    """
    if message.group is None or message.deduplication_id is not None or message.replace is not None:
        return message
    return replace(message, deduplication_id=uuid.uuid4().hex)


def sent_of(entry: Mapping[str, Any]) -> Sent:
    """Returns the entry of a sent message in an answer as its outcome."""
    return Sent(
        entry["id"],
        entry["body_md5"],
        entry["sent_at"],
        entry.get("replaced"),
        entry.get("reply_by"),
    )


def _wanted(
    source: str | Source,
    max_messages: int,
    wait_seconds: float | None,
    visibility_timeout_seconds: int | None,
) -> tuple[str, dict[str, Any], float]:
    """Returns a receive's path, its body, and its maximum wait."""
    source = source_of(source)
    body: dict[str, Any] = {"max": max_messages}
    if wait_seconds is not None:
        body["wait_seconds"] = wait_seconds
    if visibility_timeout_seconds is not None:
        body["visibility_timeout_seconds"] = visibility_timeout_seconds
    if isinstance(source, Queue) and source.receiver is not None:
        body["receiver"] = source.receiver
    longest = LONGEST_WAIT_SECONDS if wait_seconds is None else wait_seconds
    return source.path + "/messages/receive", body, longest


def _of(queue: Queue, group: str | None) -> dict[str, str] | None:
    asked = {"receiver": queue.receiver, "group": group}
    return {name: text for name, text in asked.items() if text is not None} or None


def _messages(reply: Reply, source: str | Source) -> list[Received]:
    named = str(source_of(source))
    return [Received(message, named) for message in reply.json["messages"]]


def _ended(reply: Reply, done: str) -> Outcome:
    """Returns the result for each receipt of a call that ends leases."""
    outcome = _outcome(reply, done)
    if not reply.uncertain:
        return outcome
    # Most likely the earlier try has ended these receipts.
    gone = {failed.receipt for failed in outcome.failed if failed.code == _EXPIRED}
    failed = [failed for failed in outcome.failed if failed.receipt not in gone]
    return Outcome(outcome.done | dict.fromkeys(gone), failed)


def _outcome(reply: Reply, done: str) -> Outcome:
    entries = [
        {"receipt": entry} if isinstance(entry, str) else entry
        for entry in reply.json.get(done, ())
    ]
    return Outcome(
        {entry["receipt"]: entry.get("visible_at") for entry in entries},
        [Failed(**failed) for failed in reply.json.get("failed", ())],
    )
