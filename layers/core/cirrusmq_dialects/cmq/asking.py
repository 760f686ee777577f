"""A request whose caller is known: its parameters, and the queues and topics that they name."""

from __future__ import annotations

from typing import Any, TypeAlias

from cirrusmq.access.scopes import Right
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Topic
from cirrusmq.queues.queues import get_queue
from cirrusmq.subscriptions.topics import get_topic
from cirrusmq_dialects.asking import CallerAsked
from cirrusmq_dialects.cmq.reading import Params, integer, queue_name, topic_name

Result: TypeAlias = dict[str, Any]
_OFFSET, _LIMIT, _LIMIT_DEFAULT = (0, 1_000_000), (1, 100), 20


class Asked(CallerAsked, frozen=True, kw_only=True):
    """A call with its caller and its parameters."""

    params: Params

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

    def listed(self, name: str, key: str, entries: list[Result]) -> Result:
        """A part of a listing: entries whose `key` has `searchWord` in it, by offset and limit.

        `name`: the answer's member that has them.
        """
        offset = integer(self.params, "offset", _OFFSET) or 0
        limit = integer(self.params, "limit", _LIMIT) or _LIMIT_DEFAULT
        word = self.params.get("searchWord", "")
        found = [entry for entry in entries if word in entry[key]]
        return {"totalCount": len(found), name: found[offset : offset + limit]}
