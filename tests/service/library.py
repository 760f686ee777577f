"""The client library against the service in memory, without a connection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from cirrusmq_client import Client, Connection
from cirrusmq_client.errors import error_of
from cirrusmq_client.transport import Reply
from cirrusmq_local.testing import World


class _Transport:
    """Answers calls by the functions of a World, and notes them."""

    def __init__(self, world: World, account: str) -> None:
        self._caller = world.client(account)
        self.calls: list[tuple[str, str]] = []

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        safe: bool = True,
    ) -> Reply:
        self.calls.append((method, path))
        answer = self._caller.call(method, path, body, urlencode(query or {}))
        held = json.loads(answer.text) if answer.text else None
        if answer.status >= 400:
            raise error_of(held, answer.status)
        return Reply(answer.status, held, False)


class LibraryClient(Client):
    """A client of an account of the World; `writes` are the calls that were not GET."""

    def __init__(self, world: World, account: str) -> None:
        super().__init__(Connection(url="http://127.0.0.1:1", access_key_id="", secret=""))
        self.close()
        self._made = _Transport(world, account)
        self._transport = self._made  # type: ignore[assignment]

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [call for call in self._made.calls if call[0] != "GET"]
