"""In the place of an SDK's connection to a host, of the standard library's kind."""

from __future__ import annotations

from typing import Any

from tests.dialects.conftest import URL, call

from cirrusmq_local.testing import Reply, World


class Connection:
    """Its calls end in the service in memory."""

    request_length = 0

    def __init__(self, world: World) -> None:
        self._world = world
        self.sock = self
        self.reply: Reply | None = None

    def request(self, method: str, url: str, body: Any, headers: dict[str, str]) -> None:
        self.reply = call(self._world, method, URL + url, headers, body or b"")

    def getresponse(self) -> Connection:
        return self

    @property
    def status(self) -> int:
        assert self.reply is not None
        return self.reply.status

    def getheaders(self) -> list[tuple[str, str]]:
        assert self.reply is not None
        return list(self.reply.headers.items())

    def read(self) -> bytes:
        assert self.reply is not None
        return self.reply.text.encode()

    def settimeout(self, seconds: float) -> None:
        """Nothing takes long."""

    def setsockopt(self, *option: int) -> None:
        """It is no socket."""

    def close(self) -> None:
        """Nothing is open."""
