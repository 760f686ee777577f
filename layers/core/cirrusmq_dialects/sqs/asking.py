"""A request whose caller is known: its members, and the queues that they name."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

from cirrusmq.access.permissions import Need, find_queue
from cirrusmq.access.scopes import Right
from cirrusmq.base.errors import Forbidden
from cirrusmq.model.queue import Queue
from cirrusmq_dialects.asking import MANAGE, RECEIVE, SEND, SHOW, CallerAsked
from cirrusmq_dialects.fifo_names import resolved
from cirrusmq_dialects.sqs.names import check_type, ref_in_url
from cirrusmq_dialects.sqs.reading import Members, needed_text

_NEEDS: dict[tuple[Right, ...], tuple[Need, ...]] = {
    # A grant to send or to receive alone shows no attributes, but lets the queue be found.
    SHOW: ("info", "send", "receive"),
    SEND: ("send",),
    RECEIVE: ("receive",),
    MANAGE: ("admin",),
}


class Asked(CallerAsked, frozen=True, kw_only=True):
    """A call with its caller and its parameters."""

    region: str
    """The region that the caller signs for, and finds in ARNs."""
    members: Members
    answer_share: int = 1
    """An answer's bytes for each of the core's, at most: XML escapes more than JSON does."""

    def queue_ref(self) -> str:
        """The queue in `QueueUrl`, as the core's callers name it."""
        url = needed_text(self.members, "QueueUrl")
        return self.resolved(ref_in_url(url, self.caller.account))

    def resolved(self, ref: str) -> str:
        """A queue as the core's callers name it."""
        return resolved(self.core, self.caller.account, ref)

    def find(self, rights: tuple[Right, ...], *needs: Need) -> Queue:
        """The queue in `QueueUrl`, if the caller has one of the rights, and a need, there."""
        queue = self.find_named(self.queue_ref(), rights, *needs)
        check_type(needed_text(self.members, "QueueUrl"), queue)
        return queue

    def find_named(self, ref: str, rights: tuple[Right, ...], *needs: Need) -> Queue:
        """As `find`, of a queue by its name. Forbidden; QueueNotFound."""
        self.caller.require(rights, "queues", ref)
        *others, last = needs or _NEEDS[rights]
        for need in others:
            with contextlib.suppress(Forbidden):
                return find_queue(self.core, self.caller, ref, need)
        return find_queue(self.core, self.caller, ref, last)

    def finder(self, rights: tuple[Right, ...]) -> Any:
        """Returns a function that finds the queue in `QueueUrl` as it is at that time."""
        return partial(self.find, rights)
