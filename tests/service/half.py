"""Half messages as their producers prepare, check and decide them, over HTTP events."""

from __future__ import annotations

from typing import Any

from tests.service.conftest import Message
from tests.service.topics import TestTopic

from cirrusmq_local.testing import Reply


class Producers:
    """The producers of a topic's half messages."""

    def __init__(self, topic: TestTopic) -> None:
        self.topic = topic
        self.world = topic.client.world

    def prepare(self, *messages: Message | str, attempt: str = "", **transaction: Any) -> str:
        """Prepare a publish of these messages; answers its handle."""
        given = [{"body": each} if isinstance(each, str) else each for each in messages]
        more = {"attempt": attempt} if attempt else {}
        reply = self.topic.try_publish(given, transaction=transaction, **more)
        assert reply.status == 201, reply.text
        assert reply.json["messages"] == []
        handle: str = reply.json["transaction"]["handle"]
        return handle

    def decide(self, verb: str, handle: str) -> Reply:
        """`commit` or `rollback`; what is committed is fanned out."""
        reply = self.topic.client.post(f"{self.topic.path}/half/{verb}", {"handle": handle})
        self.world.settle()
        return reply

    def commit(self, handle: str) -> list[Message]:
        reply = self.decide("commit", handle)
        assert reply.status == 200, reply.text
        entries: list[Message] = reply.json["messages"]
        return entries

    def roll_back(self, handle: str) -> None:
        reply = self.decide("rollback", handle)
        assert reply.status == 204, reply.text

    def receive(self, limit: int = 16, **fields: Any) -> list[dict[str, Any]]:
        """What these producers are to decide now."""
        path = f"{self.topic.path}/half/receive"
        reply = self.topic.client.post(path, {"max": limit, **fields})
        assert reply.status == 200, reply.text
        transactions: list[dict[str, Any]] = reply.json["transactions"]
        return transactions

    def handles(self, **fields: Any) -> list[str]:
        """Handles of what is to be decided now."""
        return [each["handle"] for each in self.receive(**fields)]

    def marks(self) -> list[str]:
        """Sort keys of all marks that are left."""
        keys = [(item["pk"]["S"], item["sk"]["S"]) for item in self.world.items()]
        return [sk for pk, sk in keys if pk.startswith("T#") and sk[:2] in ("C#", "E#")]
