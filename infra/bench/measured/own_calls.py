"""Calls of a client that sends, receives and deletes in its own process, on the SDK's client."""

from __future__ import annotations

import time
from typing import Any

import botocore.session

from cirrusmq.wiring.bootstrap import make_dynamodb
from cirrusmq_local.engine import attach

from ..counted.own_lives import OwnClient
from .timed_calls import TimedCalls

_KINDS = {"send": "", "receive": "/receive", "delete": "/delete"}


class OwnProcess(TimedCalls):
    """A client in a process, and a queue that it may call."""

    def __init__(self) -> None:
        client = make_dynamodb(botocore.session.Session(), "us-east-1")
        self._own = OwnClient(partitions=1, client=client)
        attach(self._own.world.engine, client)
        super().__init__(self._own.world)

    def timed(self, name: str, body: Any) -> tuple[float, int, Any]:
        """As `TimedCalls.timed`."""
        before = self.store_calls
        began = time.process_time()
        answer = self._own.call(_KINDS[name], body)
        return time.process_time() - began, self.store_calls - before, answer
