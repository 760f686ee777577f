"""The service's direct URLs: which calls go there, and when the service is asked for them.

The service names them (`GET /endpoints`): URLs of its functions, where a call costs nothing beside
the function. A client asks from its third call on, and again each ten minutes. Calls go to the
service's own URL meanwhile, and for a minute after nothing answered at a direct one:

    call 1, 2 ──> service      call 3 ──> GET /endpoints ──> direct      nothing there ──> service

The key's secret goes along, so only such URLs are taken as AWS gives to a Lambda function, and none
but by https, named by a service that is spoken to by https. On one machine they are the service's
own address.
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
"""A client that makes no more would pay for asking and not be paid back."""
ASKED_AGAIN_SECONDS = 600.0
REST_SECONDS = 60.0
"""After nothing answered at a direct URL."""
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
        """`ask`: a step that answers the JSON of `GET /endpoints`, or raises CirrusMQError."""
        self._run = run
        self._origin = origin
        self._ask = ask
        self._urls: Mapping[str, str] = {}
        self._calls = 0
        self._ask_at = 0.0
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """In a forked child: a lock that no thread of the parent holds."""
        self._asking = threading.Lock()

    @driven
    def url(self, method: str, path: str) -> Steps[str | None]:
        """The URL that a call goes to; None for the service's own."""
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
        """Take none for a while: nothing answers at one of them."""
        self._urls, self._ask_at = {}, time.monotonic() + REST_SECONDS

    def _learn(self) -> Steps[None]:
        # One caller asks; the others go on with what is known.
        if not self._asking.acquire(blocking=False):
            return
        try:
            self._ask_at = time.monotonic() + ASKED_AGAIN_SECONDS
            told = yield self._ask
            self._urls = allowed(self._origin, told if isinstance(told, dict) else {})
        except CirrusMQError:
            # A service without them, or none that answers now: its own URL tells.
            self._urls = {}
        except BaseException:
            self._ask_at = 0.0  # cancelled: the next caller asks
            raise
        finally:
            self._asking.release()


def allowed(origin: str, told: Mapping[str, Any]) -> dict[str, str]:
    """Those of the URLs that the secret may be sent to, by what they take."""
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
    # Where the service has a name of its own, nothing tells its region.
    return theirs.path in ("", "/") and (api is None or api[1] == function[1])
