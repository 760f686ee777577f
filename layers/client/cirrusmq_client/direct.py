"""The service's direct URLs: the calls that use them, and the times at which they are read.

The service names them (`GET /endpoints`): URLs of its functions, where a call costs nothing beside
the function. A client reads them from its third call on, and again each ten minutes. Calls go to
the service's own URL before that, and for a minute after no answer at a direct URL:

    call 1, 2 ──> service      call 3 ──> GET /endpoints ──> direct      nothing there ──> service

A call sends the key's secret, so only URLs that AWS gives to a Lambda function are accepted, only
by https, and only if the service itself is called by https. On one machine they must be the
service's own address.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from cirrusmq_client.errors import CirrusMQError
from cirrusmq_client.forking import renew_in_children
from cirrusmq_client.steps import Steps, driven, run

CALLS_BEFORE = 2
"""Calls before the URLs are read: for fewer calls the read would not pay."""
ASKED_AGAIN_SECONDS = 600.0
REST_SECONDS = 60.0
"""Time without direct URLs after no answer at one."""
_FUNCTIONS = (
    ("send", re.compile(r"/queues/[^/]+/messages")),
    ("publish", re.compile(r"/topics/[^/]+/(?:messages|half/(?:commit|rollback|receive))")),
    ("receive", re.compile(r"/.+/messages/(?:receive|peek)")),
    ("delete", re.compile(r"/.+/messages/(?:delete|visibility|give-back|dead-letter)")),
)
_LAMBDA = re.compile(r"[a-z0-9]+\.lambda-url\.([a-z0-9-]+)\.on\.aws")
_API = re.compile(r"[a-z0-9]+\.execute-api\.([a-z0-9-]+)\.amazonaws\.com")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class DirectUrls:
    """The direct URLs of one service; safe for several threads."""

    def __init__(
        self, origin: str, ask: Callable[[], Any], run: Callable[[Steps[Any]], Any] = run
    ) -> None:
        """`ask`: a step that returns the JSON of `GET /endpoints`, or raises CirrusMQError."""
        self._run = run
        self._origin = origin
        self._ask = ask
        self._urls: Mapping[str, str] = {}
        self._calls = 0
        self._ask_at = 0.0
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Makes a new lock in a forked child: a thread of the parent may hold the old one."""
        self._asking = threading.Lock()

    @driven
    def url(self, method: str, path: str) -> Steps[str | None]:
        """Returns the direct URL for a call, or None for the service's own."""
        if method != "POST":
            return None
        name = next((name for name, form in _FUNCTIONS if form.fullmatch(path)), None)
        if name is None:
            return None
        self._calls += 1
        if self._calls > CALLS_BEFORE and time.monotonic() >= self._ask_at:
            yield from self._learn()
        return self._urls.get(name)

    def rest(self) -> None:
        """Uses no direct URL for a minute, because one did not answer."""
        self._urls, self._ask_at = {}, time.monotonic() + REST_SECONDS

    def _learn(self) -> Steps[None]:
        # One caller reads the URLs; the others use the known ones.
        if not self._asking.acquire(blocking=False):
            return
        try:
            self._ask_at = time.monotonic() + ASKED_AGAIN_SECONDS
            told = yield self._ask
            self._urls = allowed(self._origin, told if isinstance(told, dict) else {})
        except CirrusMQError:
            # The service has none, or does not answer: a call at its own URL will show.
            self._urls = {}
        except BaseException:
            self._ask_at = 0.0  # cancelled: the next caller reads them
            raise
        finally:
            self._asking.release()


def allowed(origin: str, told: Mapping[str, Any]) -> dict[str, str]:
    """Returns the URLs that may get the secret, by the name of their function."""
    return {
        name: url.rstrip("/")
        for name, url in told.items()
        if isinstance(url, str) and _may_have_the_secret(origin, url)
    }


def _may_have_the_secret(origin: str, url: str) -> bool:
    try:
        ours, theirs = urlsplit(origin), urlsplit(url)
        same = (ours.scheme, ours.hostname, ours.port) == (
            *(theirs.scheme, theirs.hostname, theirs.port),
        )
    except ValueError:
        return False
    if theirs.username is not None or theirs.query or theirs.fragment:
        return False
    if ours.hostname in _LOOPBACK:
        return same
    function = _LAMBDA.fullmatch(theirs.netloc)
    if (ours.scheme, theirs.scheme) != ("https", "https") or function is None:
        return False
    api = _API.fullmatch(ours.netloc)
    # If the service has its own domain name, its region is not known.
    return theirs.path in ("", "/") and (api is None or api[1] == function[1])
