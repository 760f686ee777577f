"""A call whose caller is known: its request, and the queues that it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from cirrusmq.access.keys import Caller
from cirrusmq.access.permissions import Need, find_queue
from cirrusmq.access.scopes import RIGHTS, Right
from cirrusmq.base.errors import Forbidden
from cirrusmq.base.limits import RECEIPT_CHARACTERS
from cirrusmq.model.queue import Queue
from cirrusmq.runtime.core import Core
from cirrusmq_dialects.calling import Call
from cirrusmq_dialects.emq.errors import QUEUE_NAME_MISSING, EmqError, invalid
from cirrusmq_dialects.reporting import Progress

T = TypeVar("T")
PAGE = 1_000
"""Queues or grants of a page."""
SHOW: tuple[Right, ...] = RIGHTS
SEND: tuple[Right, ...] = ("send",)
RECEIVE: tuple[Right, ...] = ("receive",)
MANAGE: tuple[Right, ...] = ("manage",)
_NEEDS: dict[tuple[Right, ...], Need] = dict(
    zip((SHOW, SEND, RECEIVE, MANAGE), ("info", "send", "receive", "admin"), strict=True)
)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A call with its caller and its request."""

    call: Call
    caller: Caller
    request: Any
    progress: Progress

    @property
    def core(self) -> Core:
        """The core that it is asked of."""
        return self.call.core

    def queue(self, rights: tuple[Right, ...], name: str | None = None) -> Queue:
        """Returns the queue that the request names. Raises Forbidden or QueueNotFound."""
        ref = self.ref(self.request.queueName if name is None else name)
        self.caller.require(rights, "queues", ref)
        queue = find_queue(self.core, self.caller, ref, _NEEDS[rights])
        self.progress.owner = queue.account
        return queue

    def ref(self, name: str | None) -> str:
        """Returns `account/queue` as the core's callers name it. Raises EmqError for others."""
        if not name:
            raise EmqError(QUEUE_NAME_MISSING, "queueName: is needed")
        account, _, queue = name.partition("/")
        if not account or not queue or "/" in queue:
            raise invalid("queueName", f"must be account/queue, not {name[:150]}")
        return f"{account}:{queue}"

    def entries(self, key: str, limit: int) -> list[Any]:
        """Returns the entries of a batch. Raises EmqError if their number or keys are not possible.

        key: the field of an entry that is another one in each.
        """
        found: list[Any] = self.request.entries or []
        if not 1 <= len(found) <= limit:
            name = self.progress.action.replace("SecondsBatch", "") + "RequestEntryList"
            raise invalid(name, f"must have 1 to {limit} entries, not {len(found)}")
        keys = [getattr(each, key) for each in found]
        if not all(keys) or len(set(keys)) < len(keys):
            raise invalid(key, "must be given, and be another one in each entry")
        return found

    def require_whole_account(self) -> None:
        """Raises Forbidden for a key that may not see everything in the account."""
        scope = self.caller.scope
        if scope is not None and scope.manage != "all":
            raise Forbidden("the access key's scope lacks manage on all queues and topics")


def all_of(page: Callable[[str | None], tuple[list[T], str | None]]) -> list[T]:
    """Returns the elements of all pages; `page` returns one by its cursor, and the next cursor."""
    found, cursor = page(None)
    while cursor is not None:
        more, cursor = page(cursor)
        found = [*found, *more]
    return found


def shown_name(queue: Queue, name: str | None = None) -> str:
    """The name of a queue, or of one of the same account, as EMQ has it."""
    return f"{queue.account}/{queue.name if name is None else name}"


def integer(name: str, value: int | None, bounds: tuple[int, int]) -> int | None:
    """Returns a number that is given and in its range, or None. Raises EmqError."""
    if value is not None and not bounds[0] <= value <= bounds[1]:
        raise invalid(name, f"must be {bounds[0]} to {bounds[1]}, not {value}")
    return value


def handle(value: str | None) -> str:
    """Returns a handle. Raises EmqError if it is missing or too long."""
    if not value or len(value) > RECEIPT_CHARACTERS:
        raise invalid("receiptHandle", f"must have 1 to {RECEIPT_CHARACTERS} characters")
    return value
