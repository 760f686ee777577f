"""Calls on queues, their receivers and grants, and the long work on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, cast

from cirrusmq_client.answers import (
    GrantState,
    OperationState,
    QueueAttributes,
    QueueWithCounts,
    ReceiverAttributes,
    ReceiverWithCounts,
)
from cirrusmq_client.calls import Calls
from cirrusmq_client.checks import texts
from cirrusmq_client.errors import GrantNotFound, QueueNotFound, ReceiverNotFound
from cirrusmq_client.inputs import QueueInput, ReceiverChangeInput, ReceiverInput
from cirrusmq_client.sources import part, queue_path
from cirrusmq_client.steps import Entries, Entry, Steps, driven, listed
from cirrusmq_client.times import to_moment

POLL_SECONDS = (0.1, 2.0)
_DEFAULTS: QueueInput = {}
"""A type checker names the wrong key of a TypedDict, but of no union with None."""


class QueueCalls(Calls):
    """Queues, in steps. Errors are those of the contract, by their codes."""

    @driven
    def create_queue(
        self, name: str, attributes: QueueInput = _DEFAULTS, *, exact: bool = False
    ) -> Steps[QueueAttributes]:
        """Make a queue, or find one with these attributes; else AlreadyExists.

        An attribute that is not given may be anything; with `exact` it must be at its default.
        """
        path = queue_path(name)
        return cast(QueueAttributes, (yield from self._put(path, attributes or {}, exact=exact)))

    @driven
    def change_queue(self, name: str, attributes: QueueInput) -> Steps[QueueAttributes]:
        """Change some attributes; all of them are answered."""
        return cast(QueueAttributes, (yield from self._patch(queue_path(name), attributes)))

    @driven
    def show_queue(self, name: str) -> Steps[QueueWithCounts]:
        """A queue's attributes and `counts`."""
        return cast(QueueWithCounts, (yield from self._get(queue_path(name))))

    @listed
    def list_queues(self, prefix: str | None = None) -> Entries[QueueAttributes]:
        """The account's queues, by name."""
        return self._pages("/queues", "queues", prefix=prefix)

    @driven
    def delete_queue(self, name: str) -> Steps[None]:
        """Delete a queue and all its messages."""
        yield from self._delete(queue_path(name), QueueNotFound)

    @driven
    def purge_queue(self, name: str) -> Steps[str]:
        """Remove every message sent before now; the operation's id."""
        return str((yield from self._post_once(queue_path(name) + "/purge", {}))["operation"])

    @driven
    def rewind_queue(self, name: str, to: datetime | str | float) -> Steps[str]:
        """Make deleted messages sent at or after a time active again; the operation's id.

        A number is in seconds since the epoch.
        """
        body = {"to": to_moment(to)}
        return str((yield from self._post_once(queue_path(name) + "/rewind", body))["operation"])

    @driven
    def redrive_queue(
        self,
        name: str,
        to: str | None = None,
        max_messages: int | None = None,
        *,
        dead_letter: Mapping[str, Any] | None = None,
        ids: Sequence[str] | None = None,
        receipts: Sequence[str] | None = None,
    ) -> Steps[str]:
        """Send dead letters back, or move any queue's messages to `to`; the operation's id.

        All that are active, or those chosen: by `dead_letter` as in `peek_all`, by at most 100
        `ids`, or by at most 16 `receipts` of messages that are held.
        """
        given = {
            "to": to,
            "max_messages": max_messages,
            "dead_letter": dict(dead_letter) if dead_letter else None,
            "ids": None if ids is None else texts("ids", ids),
            "receipts": None if receipts is None else texts("receipts", receipts),
        }
        body = {key: value for key, value in given.items() if value is not None}
        return str((yield from self._post_once(queue_path(name) + "/redrive", body))["operation"])

    @driven
    def show_operation(self, operation: str) -> Steps[OperationState]:
        """How far an operation is."""
        return cast(OperationState, (yield from self._get(f"/operations/{part(operation)}")))

    @listed
    def list_operations(
        self,
        *,
        state: str | None = None,
        kind: str | None = None,
        queue: str | None = None,
        topic: str | None = None,
    ) -> Entries[OperationState]:
        """The account's operations of the last seven days, the newest first.

        `state`: running, succeeded or failed. `kind`: purge, rewind, redrive, backfill or replay.
        """
        return self._pages(
            "/operations", "operations", state=state, kind=kind, queue=queue, topic=topic
        )

    @listed
    def watch_operation(self, operation: str) -> Entries[OperationState]:
        """An operation again and again, with growing pauses, until it has ended."""
        pause, longest = POLL_SECONDS
        while True:
            shown: OperationState = yield partial(self.show_operation, operation)
            yield Entry(shown)
            if shown["state"] != "running":
                return
            yield partial(self._transport.sleep, pause)
            pause = min(2 * pause, longest)

    @driven
    def create_receiver(
        self, queue: str, name: str, attributes: ReceiverInput, *, exact: bool = False
    ) -> Steps[ReceiverAttributes]:
        """Add an independent receiver, or find one with these attributes; as `create_queue`.

        With `start` earliest it gets what is in the queue, too. The answer's `operation` gives it
        what was sent before: `watch_operation` tells how far that is.
        """
        path = _receiver(queue, name)
        return cast(ReceiverAttributes, (yield from self._put(path, attributes, exact=exact)))

    @driven
    def change_receiver(
        self, queue: str, name: str, attributes: ReceiverChangeInput
    ) -> Steps[ReceiverAttributes]:
        """Change some attributes of a receiver, such as `paused`."""
        reply = yield from self._call("PATCH", _receiver(queue, name), dict(attributes))
        return cast(ReceiverAttributes, reply.json)

    @driven
    def show_receiver(self, queue: str, name: str) -> Steps[ReceiverWithCounts]:
        """A receiver's attributes and `counts`."""
        return cast(ReceiverWithCounts, (yield from self._get(_receiver(queue, name))))

    @listed
    def list_receivers(self, queue: str) -> Entries[ReceiverAttributes]:
        """A queue's receivers."""
        return self._pages(queue_path(queue) + "/receivers", "receivers")

    @driven
    def delete_receiver(self, queue: str, name: str) -> Steps[None]:
        """Delete a receiver."""
        yield from self._delete(_receiver(queue, name), ReceiverNotFound)

    @driven
    def put_grant(self, queue: str, account: str, permission: str) -> Steps[GrantState]:
        """Let another account `send`, `receive`, `send_receive`, `info`, `admin` or `full`."""
        return cast(
            GrantState, (yield from self._put(_grant(queue, account), {"permission": permission}))
        )

    @driven
    def show_grant(self, queue: str, account: str) -> Steps[GrantState]:
        """Another account's permission; GrantNotFound."""
        return cast(GrantState, (yield from self._get(_grant(queue, account))))

    @driven
    def list_grants(self, queue: str) -> Steps[list[GrantState]]:
        """All grants on a queue."""
        return (yield from self._all(queue_path(queue) + "/grants", "grants"))

    @driven
    def delete_grant(self, queue: str, account: str) -> Steps[None]:
        """Take a grant back."""
        yield from self._delete(_grant(queue, account), GrantNotFound)


def _receiver(queue: str, name: str) -> str:
    return f"{queue_path(queue)}/receivers/{part(name)}"


def _grant(queue: str, account: str) -> str:
    return f"{queue_path(queue)}/grants/{part(account)}"
