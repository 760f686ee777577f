"""Calls on queues, their receivers and grants, and the long work on them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from cirrusmq_client.answers import (
    GrantState,
    OperationState,
    QueueAttributes,
    QueueWithCounts,
    ReceiverAttributes,
    ReceiverWithCounts,
)
from cirrusmq_client.calls import Attributes, Calls
from cirrusmq_client.errors import GrantNotFound, QueueNotFound, ReceiverNotFound
from cirrusmq_client.sources import part, queue_path
from cirrusmq_client.times import to_text

POLL_SECONDS = (0.1, 2.0)


class QueueCalls(Calls):
    """Queues. Errors are those of the contract, by their codes."""

    def create_queue(self, name: str, attributes: Attributes | None = None) -> QueueAttributes:
        """Make a queue, or find it with exactly these attributes; else AlreadyExists."""
        return cast(QueueAttributes, self._put(queue_path(name), attributes or {}))

    def change_queue(self, name: str, attributes: Attributes) -> QueueAttributes:
        """Change some attributes; all of them are answered."""
        return cast(QueueAttributes, self._patch(queue_path(name), attributes))

    def show_queue(self, name: str) -> QueueWithCounts:
        """A queue's attributes and `counts`."""
        return cast(QueueWithCounts, self._get(queue_path(name)))

    def list_queues(self, prefix: str | None = None) -> Iterator[QueueAttributes]:
        """The account's queues, by name."""
        return self._pages("/queues", "queues", prefix=prefix)

    def delete_queue(self, name: str) -> None:
        """Delete a queue and all its messages."""
        self._delete(queue_path(name), QueueNotFound)

    def purge_queue(self, name: str) -> str:
        """Remove every message sent before now; the operation's id."""
        return str(self._post_once(queue_path(name) + "/purge", {})["operation"])

    def rewind_queue(self, name: str, to: datetime | str) -> str:
        """Make deleted messages sent at or after a time active again; the operation's id."""
        body = {"to": to_text(to)}
        return str(self._post_once(queue_path(name) + "/rewind", body)["operation"])

    def redrive_queue(
        self, name: str, to: str | None = None, max_messages: int | None = None
    ) -> str:
        """Send a dead-letter queue's messages to `to`, or back; the operation's id."""
        body: dict[str, Any] = {} if to is None else {"to": to}
        if max_messages is not None:
            body["max_messages"] = max_messages
        return str(self._post_once(queue_path(name) + "/redrive", body)["operation"])

    def show_operation(self, operation: str) -> OperationState:
        """How far an operation is."""
        return cast(OperationState, self._get(f"/operations/{part(operation)}"))

    def watch_operation(self, operation: str) -> Iterator[OperationState]:
        """An operation again and again, with growing pauses, until it has ended."""
        pause, longest = POLL_SECONDS
        while True:
            shown = self.show_operation(operation)
            yield shown
            if shown["state"] != "running":
                return
            time.sleep(pause)
            pause = min(2 * pause, longest)

    def create_receiver(self, queue: str, name: str, attributes: Attributes) -> ReceiverAttributes:
        """Add an independent receiver: `start` and perhaps `filter`."""
        return cast(ReceiverAttributes, self._put(_receiver(queue, name), attributes))

    def show_receiver(self, queue: str, name: str) -> ReceiverWithCounts:
        """A receiver's attributes and `counts`."""
        return cast(ReceiverWithCounts, self._get(_receiver(queue, name)))

    def list_receivers(self, queue: str) -> Iterator[ReceiverAttributes]:
        """A queue's receivers."""
        return self._pages(queue_path(queue) + "/receivers", "receivers")

    def delete_receiver(self, queue: str, name: str) -> None:
        """Delete a receiver."""
        self._delete(_receiver(queue, name), ReceiverNotFound)

    def put_grant(self, queue: str, account: str, permission: str) -> GrantState:
        """Let another account `send`, `receive`, `send_receive`, `info`, `admin` or `full`."""
        return cast(GrantState, self._put(_grant(queue, account), {"permission": permission}))

    def show_grant(self, queue: str, account: str) -> GrantState:
        """Another account's permission; GrantNotFound."""
        return cast(GrantState, self._get(_grant(queue, account)))

    def list_grants(self, queue: str) -> list[GrantState]:
        """All grants on a queue."""
        return list(self._pages(queue_path(queue) + "/grants", "grants"))

    def delete_grant(self, queue: str, account: str) -> None:
        """Take a grant back."""
        self._delete(_grant(queue, account), GrantNotFound)


def _receiver(queue: str, name: str) -> str:
    return f"{queue_path(queue)}/receivers/{part(name)}"


def _grant(queue: str, account: str) -> str:
    return f"{queue_path(queue)}/grants/{part(account)}"
