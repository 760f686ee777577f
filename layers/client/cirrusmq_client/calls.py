"""The base of every group of calls: a transport, pages, and repeats of idempotent calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeAlias, TypeVar, cast

from cirrusmq_client.answers import Health
from cirrusmq_client.attempts import make_attempt
from cirrusmq_client.errors import CirrusMQError, InvalidParameter
from cirrusmq_client.transport import Transport

T = TypeVar("T")
Attributes: TypeAlias = Mapping[str, Any]
"""Attributes of a queue, topic, receiver or subscription, as a request has them."""


class Calls:
    """Calls over one transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """Any call by its path: the answer's JSON. Not repeated where its answer is lost."""
        return self._transport.call(method, path, body, query=query, safe=method == "GET").json

    def _get(self, path: str, **query: Any) -> Any:
        return self._transport.call("GET", path, query=_given(query) or None).json

    def _put(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._transport.call("PUT", path, body).json

    def _patch(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._transport.call("PATCH", path, body).json

    def _post_once(self, path: str, body: Mapping[str, Any]) -> Any:
        """A call that would do more if it were made twice."""
        return self._transport.call("POST", path, body, safe=False).json

    def _delete(self, path: str, gone: type[CirrusMQError]) -> None:
        """Delete; that it is gone already is success if an earlier try may have deleted it."""
        try:
            self._transport.call("DELETE", path)
        except gone as error:
            if not error.uncertain:
                raise

    def _pages(self, path: str, entries: str, **query: Any) -> Iterator[Any]:
        """Every entry of a listing, page by page."""
        wanted = _given(query)
        while True:
            page = self._transport.call("GET", path, query=wanted or None).json
            yield from page[entries]
            if "cursor" not in page:
                return
            wanted = wanted | {"cursor": page["cursor"]}

    def _with_attempt(self, make: Callable[[str], T]) -> T:
        """A call that shows an `attempt`.

        Before the first answer the service's time is a guess. An attempt refused for its time
        stored nothing, and the refusal tells the time: so once more, with a new one.
        """
        try:
            return make(self._new_attempt())
        except InvalidParameter as error:
            if error.parameter != "attempt" or error.uncertain:
                raise
        return make(self._new_attempt())

    def _learn_time(self) -> Health:
        """The service's state, and so its time to the millisecond."""
        sent = time.monotonic()
        reply = self._transport.call("GET", "/health")
        if not reply.uncertain:
            told = datetime.fromisoformat(reply.json["time"]).timestamp()
            self._transport.clock.see_exactly(told, sent, time.monotonic())
        return cast(Health, reply.json)

    def _new_attempt(self) -> str:
        return make_attempt(self._transport.clock.begun())


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None and value != ""}
