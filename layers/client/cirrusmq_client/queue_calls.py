"""Calls on queues, their receivers, grants and operations."""

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
    """Calls on queues. The methods raise the contract's errors, subclasses of CirrusMQError."""

    @driven
    def create_queue(
        self, name: str, attributes: QueueInput = _DEFAULTS, *, exact: bool = False
    ) -> Steps[QueueAttributes]:
        """Creates a queue, or finds one with these attributes. Returns its attributes.

        Raises AlreadyExists if a queue of this name has other attributes.

        `attributes`: attributes of the queue; a new queue has defaults for the others. `exact`: an
        existing queue must have these defaults, too; otherwise its others may have any value.
        """
        path = queue_path(name)
        return cast(QueueAttributes, (yield from self._put(path, attributes or {}, exact=exact)))

    @driven
    def change_queue(self, name: str, attributes: QueueInput) -> Steps[QueueAttributes]:
        """Changes some attributes. Returns all attributes."""
        return cast(QueueAttributes, (yield from self._patch(queue_path(name), attributes)))

    @driven
    def show_queue(self, name: str) -> Steps[QueueWithCounts]:
        """Returns a queue's attributes and `counts`."""
        return cast(QueueWithCounts, (yield from self._get(queue_path(name))))

    @listed
    def list_queues(self, prefix: str | None = None) -> Entries[QueueAttributes]:
        """Iterates over the account's queues, by name."""
        return self._pages("/queues", "queues", prefix=prefix)

    @driven
    def delete_queue(self, name: str) -> Steps[None]:
        """Deletes a queue and all its messages."""
        yield from self._delete(queue_path(name), QueueNotFound)

    @driven
    def purge_queue(self, name: str) -> Steps[str]:
        """Removes every message sent before now. Returns the operation's id."""
        return str((yield from self._post_once(queue_path(name) + "/purge", {}))["operation"])

    @driven
    def rewind_queue(self, name: str, to: datetime | str | float) -> Steps[str]:
        """Makes deleted messages that were sent at or after a time active again.

        Returns the operation's id. `to`: a number is in seconds since the epoch.
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
        """Sends dead letters back to their source, or moves a queue's messages to another queue.

        Moves all active messages, or a selection. Returns the operation's id.

        `to`: the other queue; None for dead letters' sources. `max_messages`: None for all.
        `dead_letter`: selects as in `peek_all`. `ids`: at most 100. `receipts`: at most 16, of
        leased messages.
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
        """Returns the state of an operation."""
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
        """Iterates over the account's operations of the last seven days, the newest first.

        `state`: running, succeeded or failed. `kind`: purge, rewind, redrive, backfill or replay.
        """
        return self._pages(
            "/operations", "operations", state=state, kind=kind, queue=queue, topic=topic
        )

    @listed
    def watch_operation(self, operation: str) -> Entries[OperationState]:
        """Yields an operation's state, with growing pauses, until the operation has ended."""
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
        """Creates an independent receiver, or finds one; as `create_queue`.

        With `start` earliest it also gets the queue's earlier messages, by the `operation` of the
        answer, whose progress `watch_operation` yields.
        """
        path = _receiver(queue, name)
        return cast(ReceiverAttributes, (yield from self._put(path, attributes, exact=exact)))

    @driven
    def change_receiver(
        self, queue: str, name: str, attributes: ReceiverChangeInput
    ) -> Steps[ReceiverAttributes]:
        """Changes some attributes of a receiver, such as `paused`."""
        reply = yield from self._call("PATCH", _receiver(queue, name), dict(attributes))
        return cast(ReceiverAttributes, reply.json)

    @driven
    def show_receiver(self, queue: str, name: str) -> Steps[ReceiverWithCounts]:
        """Returns a receiver's attributes and `counts`."""
        return cast(ReceiverWithCounts, (yield from self._get(_receiver(queue, name))))

    @listed
    def list_receivers(self, queue: str) -> Entries[ReceiverAttributes]:
        """Iterates over a queue's receivers."""
        return self._pages(queue_path(queue) + "/receivers", "receivers")

    @driven
    def delete_receiver(self, queue: str, name: str) -> Steps[None]:
        """Deletes a receiver."""
        yield from self._delete(_receiver(queue, name), ReceiverNotFound)

    @driven
    def put_grant(self, queue: str, account: str, permission: str) -> Steps[GrantState]:
        """Grants another account a permission on a queue. Returns the grant.

        `permission`: `send`, `receive`, `send_receive`, `info`, `admin` or `full`.
        """
        return cast(
            GrantState, (yield from self._put(_grant(queue, account), {"permission": permission}))
        )

    @driven
    def show_grant(self, queue: str, account: str) -> Steps[GrantState]:
        """Returns another account's permission. Raises GrantNotFound."""
        return cast(GrantState, (yield from self._get(_grant(queue, account))))

    @driven
    def list_grants(self, queue: str) -> Steps[list[GrantState]]:
        """Returns all grants on a queue."""
        return (yield from self._all(queue_path(queue) + "/grants", "grants"))

    @driven
    def delete_grant(self, queue: str, account: str) -> Steps[None]:
        """Removes a grant."""
        yield from self._delete(_grant(queue, account), GrantNotFound)


def _receiver(queue: str, name: str) -> str:
    return f"{queue_path(queue)}/receivers/{part(name)}"


def _grant(queue: str, account: str) -> str:
    return f"{queue_path(queue)}/grants/{part(account)}"
