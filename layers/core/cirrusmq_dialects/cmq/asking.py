"""A request whose caller is known: its parameters, and the queues and topics that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import msgspec

from cirrusmq.access.keys import Caller
from cirrusmq.access.scopes import RIGHTS, Right
from cirrusmq.base.errors import Forbidden
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Topic
from cirrusmq.queues.queues import get_queue
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions.topics import get_topic
from cirrusmq_dialects.calling import Call
from cirrusmq_dialects.cmq.reading import Params, integer, queue_name, topic_name

Result: TypeAlias = dict[str, Any]
SHOW: tuple[Right, ...] = RIGHTS
SEND: tuple[Right, ...] = ("send",)
RECEIVE: tuple[Right, ...] = ("receive",)
MANAGE: tuple[Right, ...] = ("manage",)
_OFFSET, _LIMIT, _LIMIT_DEFAULT = (0, 1_000_000), (1, 100), 20
_PAGE = 1_000
"""Entries of a listing that are read together."""
T = TypeVar("T")
PageOf: TypeAlias = Callable[[Core, str, str, int, str | None], tuple[list[T], str | None]]
"""A listing of the core, by account, prefix, entries and cursor."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A call with its caller and its parameters."""

    call: Call
    caller: Caller
    params: Params

    @property
    def core(self) -> Core:
        """The core that it is asked of."""
        return self.call.core

    def queue(self, rights: tuple[Right, ...]) -> Queue:
        """Returns the queue in `queueName`. Raises Forbidden if the key has none of the rights."""
        name = queue_name(self.params)
        self.caller.require(rights, "queues", name)
        return get_queue(self.core, self.caller.account, name)

    def topic(self, rights: tuple[Right, ...]) -> Topic:
        """Returns the topic in `topicName`. Raises Forbidden if the key has none of the rights."""
        name = topic_name(self.params)
        self.caller.require(rights, "topics", name)
        return get_topic(self.core, self.caller.account, name)

    def require_whole_account(self) -> None:
        """Raises Forbidden for a key that may not see everything in the account."""
        scope = self.caller.scope
        if scope is not None and scope.manage != "all":
            raise Forbidden("the access key's scope lacks manage on all queues and topics")

    def all_of(self, page_of: PageOf[T]) -> Iterator[T]:
        """All of the account's queues or topics, page by page."""
        cursor: str | None = None
        while True:
            page, cursor = page_of(self.core, self.caller.account, "", _PAGE, cursor)
            yield from page
            if cursor is None:
                return

    def listed(self, name: str, key: str, entries: list[Result]) -> Result:
        """A part of a listing: entries whose `key` has `searchWord` in it, by offset and limit.

        `name`: the answer's member that has them.
        """
        offset = integer(self.params, "offset", _OFFSET) or 0
        limit = integer(self.params, "limit", _LIMIT) or _LIMIT_DEFAULT
        word = self.params.get("searchWord", "")
        found = [entry for entry in entries if word in entry[key]]
        return {"totalCount": len(found), name: found[offset : offset + limit]}
