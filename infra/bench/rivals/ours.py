"""A queue of the local stack, by HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import httpx

from . import Service
from .servers import Stack, our_stack

WAIT_SECONDS = 10


class OurQueue:
    """The calls as written with httpx alone."""

    def __init__(self, stack: Stack, name: str) -> None:
        self._http = httpx.Client(base_url=stack.url, headers=stack.headers, timeout=60)
        self._path = f"/queues/{name}"

    def create(self) -> None:
        """Make the queue."""
        self._http.put(self._path).raise_for_status()

    def send(self, bodies: Sequence[str]) -> None:
        """One send."""
        self._call("messages", {"messages": [{"body": body} for body in bodies]})

    def take(self, most: int) -> int:
        """One receive and one delete."""
        held = self._receive(most, 0.2)
        if held:
            self._delete(held)
        return len(held)

    def consume(self, count: int, handle: Callable[[str], None]) -> None:
        """Long polling."""
        while count:
            held = self._receive(1, WAIT_SECONDS)
            if held:
                handle(held[0]["body"])
                self._delete(held)
                count -= 1

    def close(self) -> None:
        """End the connection."""
        self._http.close()

    def _receive(self, most: int, wait_seconds: float) -> list[dict[str, Any]]:
        asked = {"max": most, "wait_seconds": wait_seconds}
        held: list[dict[str, Any]] = self._call("messages/receive", asked)["messages"]
        return held

    def _delete(self, held: list[dict[str, Any]]) -> None:
        self._call("messages/delete", {"receipts": [message["receipt"] for message in held]})

    def _call(self, path: str, body: object) -> Any:
        answer = self._http.post(f"{self._path}/{path}", json=body)
        answer.raise_for_status()
        return answer.json()


SERVICE = Service(
    name="ours",
    send_batch=16,
    take_batch=16,
    running=our_stack,
    queue=OurQueue,
)
