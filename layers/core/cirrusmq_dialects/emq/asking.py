"""A call whose caller is known: its request, and the queues that it names."""

from __future__ import annotations

from typing import Any, TypeAlias

from cirrusmq.access.permissions import Need, authorize
from cirrusmq.access.scopes import Right
from cirrusmq.base.names import QueueRef
from cirrusmq.model.queue import Queue
from cirrusmq.queues.queues import get_queue
from cirrusmq_dialects.asking import MANAGE, RECEIVE, SEND, SHOW, CallerAsked
from cirrusmq_dialects.emq.errors import QUEUE_NAME_MISSING, EmqError, invalid
from cirrusmq_dialects.reporting import Progress

Result: TypeAlias = dict[str, Any]
"""The fields of an answer's struct, by their names; structs in it are such, too."""
_NEEDS: dict[tuple[Right, ...], Need] = {
    SHOW: "info",
    SEND: "send",
    RECEIVE: "receive",
    MANAGE: "admin",
}


class Asked(CallerAsked, frozen=True, kw_only=True):
    """A call with its caller and its request."""

    request: Any
    progress: Progress

    def queue(self, rights: tuple[Right, ...], name: str | None = None) -> Queue:
        """Returns the queue in `queueName`, or of a name. Raises Forbidden or QueueNotFound."""
        named = self.reach(rights, _NEEDS[rights], self.request.queueName if name is None else name)
        self.progress.owner = named.account
        return get_queue(self.core, *named)

    def reach(self, rights: tuple[Right, ...], need: Need, name: str | None) -> QueueRef:
        """Returns the account and the name of a queue, which need not exist. Raises Forbidden."""
        ref = self.ref(name)
        self.caller.require(rights, "queues", ref)
        return authorize(self.core, self.caller, ref, need)

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


def shown_name(queue: Queue, name: str | None = None) -> str:
    """The name of a queue, or of one of the same account, as EMQ has it."""
    return f"{queue.account}/{queue.name if name is None else name}"


def integer(name: str, value: int | None, bounds: tuple[int, int]) -> int | None:
    """Returns a number that is given and in its range, or None. Raises EmqError."""
    if value is not None and not bounds[0] <= value <= bounds[1]:
        raise invalid(name, f"must be {bounds[0]} to {bounds[1]}, not {value}")
    return value


def text(name: str, value: str | None, limit: int) -> str:
    """Returns a text. Raises EmqError if it is missing or has more characters than the limit."""
    if not value or len(value) > limit:
        raise invalid(name, f"must have 1 to {limit} characters")
    return value
