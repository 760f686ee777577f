"""The base of all groups of calls: a transport, pages, and retries of idempotent calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from cirrusmq_client.answers import Health
from cirrusmq_client.attempts import make_attempt
from cirrusmq_client.errors import CirrusMQError, InvalidParameter
from cirrusmq_client.steps import Entries, Entry, Steps, driven
from cirrusmq_client.transport import BaseTransport, Reply

T = TypeVar("T")
Attributes: TypeAlias = Mapping[str, Any]
"""Attributes of a queue, topic, receiver or subscription in a request."""


class Calls:
    """Calls over one transport, in steps; a subclass has the driver."""

    def __init__(self, transport: BaseTransport) -> None:
        self._transport = transport

    @driven
    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Steps[Any]:
        """Makes any call by its path. Returns the answer's JSON.

        The call is not repeated if its answer is lost.
        """
        return (yield from self._call(method, path, body, query=query, safe=method == "GET")).json

    def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **options: Any
    ) -> Steps[Reply]:
        reply: Reply = yield partial(self._transport.call, method, path, body, **options)
        return reply

    def _get(self, path: str, **query: Any) -> Steps[Any]:
        return (yield from self._call("GET", path, query=_given(query) or None)).json

    def _put(self, path: str, body: Mapping[str, Any], *, exact: bool = False) -> Steps[Any]:
        query = {"exact": "true"} if exact else None
        return (yield from self._call("PUT", path, body, query=query)).json

    def _patch(self, path: str, body: Mapping[str, Any]) -> Steps[Any]:
        return (yield from self._call("PATCH", path, body)).json

    def _post_safely(self, path: str, body: Mapping[str, Any]) -> Steps[Any]:
        """Makes an idempotent call."""
        return (yield from self._call("POST", path, body)).json

    def _post_once(self, path: str, body: Mapping[str, Any] | None) -> Steps[Any]:
        """Makes a call that is not idempotent, and so is not repeated."""
        return (yield from self._call("POST", path, body, safe=False)).json

    def _delete(self, path: str, gone: type[CirrusMQError]) -> Steps[None]:
        """Deletes; the error `gone` is success if an earlier try may have deleted it."""
        try:
            yield from self._call("DELETE", path)
        except gone as error:
            if not error.uncertain:
                raise

    def _pages(self, path: str, entries: str, **query: Any) -> Entries[Any]:
        """Yields every entry of a listing, page by page."""
        wanted: dict[str, Any] | None = _given(query)
        while wanted is not None:
            page, wanted = yield from self._page(path, wanted)
            for entry in page[entries]:
                yield Entry(entry)

    def _all(self, path: str, entries: str) -> Steps[list[Any]]:
        """Returns all entries of a short listing."""
        found: list[Any] = []
        wanted: dict[str, Any] | None = {}
        while wanted is not None:
            page, wanted = yield from self._page(path, wanted)
            found += page[entries]
        return found

    def _page(self, path: str, wanted: dict[str, Any]) -> Steps[tuple[Any, dict[str, Any] | None]]:
        """Returns a page, and the query of the next one or None."""
        page = (yield from self._call("GET", path, query=wanted or None)).json
        return page, wanted | {"cursor": page["cursor"]} if "cursor" in page else None

    def _with_attempt(self, make: Callable[[str], Steps[T]]) -> Steps[T]:
        """Makes a call with an `attempt`.

        Before the first answer the service's time is a guess. If an attempt is refused for its
        time, nothing was stored, and the answer has the time: so the call is made again with a new
        one.
        """
        try:
            return (yield from make(self._new_attempt()))
        except InvalidParameter as error:
            if error.parameter != "attempt" or error.uncertain:
                raise
        return (yield from make(self._new_attempt()))

    def _learn_time(self) -> Steps[Health]:
        """Returns the service's health, and learns its time to the millisecond."""
        sent = time.monotonic()
        reply = yield from self._call("GET", "/health")
        if not reply.uncertain:
            told = datetime.fromisoformat(reply.json["time"]).timestamp()
            self._transport.clock.see_exactly(told, sent, time.monotonic())
        return cast(Health, reply.json)

    def _new_attempt(self) -> str:
        return make_attempt(self._transport.clock.begun())


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None and value != ""}
