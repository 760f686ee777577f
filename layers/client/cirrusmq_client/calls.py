"""The base of every group of calls: a transport, pages, and repeats of idempotent calls."""

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
"""Attributes of a queue, topic, receiver or subscription, as a request has them."""


class Calls:
    """Calls over one transport, in steps; a class of it has their driver."""

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
        """Any call by its path: the answer's JSON. Not repeated where its answer is lost."""
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
        """A call that does no more if it is made twice."""
        return (yield from self._call("POST", path, body)).json

    def _post_once(self, path: str, body: Mapping[str, Any] | None) -> Steps[Any]:
        """A call that would do more if it were made twice."""
        return (yield from self._call("POST", path, body, safe=False)).json

    def _delete(self, path: str, gone: type[CirrusMQError]) -> Steps[None]:
        """Delete; that it is gone already is success if an earlier try may have deleted it."""
        try:
            yield from self._call("DELETE", path)
        except gone as error:
            if not error.uncertain:
                raise

    def _pages(self, path: str, entries: str, **query: Any) -> Entries[Any]:
        """Every entry of a listing, page by page."""
        wanted: dict[str, Any] | None = _given(query)
        while wanted is not None:
            page, wanted = yield from self._page(path, wanted)
            for entry in page[entries]:
                yield Entry(entry)

    def _all(self, path: str, entries: str) -> Steps[list[Any]]:
        """A listing that is not long."""
        found: list[Any] = []
        wanted: dict[str, Any] | None = {}
        while wanted is not None:
            page, wanted = yield from self._page(path, wanted)
            found += page[entries]
        return found

    def _page(self, path: str, wanted: dict[str, Any]) -> Steps[tuple[Any, dict[str, Any] | None]]:
        """A page, and the query of the next one."""
        page = (yield from self._call("GET", path, query=wanted or None)).json
        return page, wanted | {"cursor": page["cursor"]} if "cursor" in page else None

    def _with_attempt(self, make: Callable[[str], Steps[T]]) -> Steps[T]:
        """A call that shows an `attempt`.

        Before the first answer the service's time is a guess. An attempt refused for its time
        stored nothing, and the refusal tells the time: so once more, with a new one.
        """
        try:
            return (yield from make(self._new_attempt()))
        except InvalidParameter as error:
            if error.parameter != "attempt" or error.uncertain:
                raise
        return (yield from make(self._new_attempt()))

    def _learn_time(self) -> Steps[Health]:
        """The service's state, and so its time to the millisecond."""
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
