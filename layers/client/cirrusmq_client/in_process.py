"""Calls that this process makes itself, on the deployment's tables: `Client(in_process=True)`.

The service names its tables (`GET /endpoints`) where its operator allows it. They are called with
this process's own AWS credentials, by the package `cirrusmq-in-process`; this module knows when it
is asked, and hands calls over. Every call may go by the URL as well, and does where anything is
missing: the tables, a right, the package's formats, a clock that is right.

    call ──> the service named tables? ── no ──> URL
                      └─ yes ──> the package: done here ── or "by the URL" ──> URL ──> told of it
"""

from __future__ import annotations

import importlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cirrusmq_client.direct import ASKED_AGAIN_SECONDS, REST_SECONDS
from cirrusmq_client.errors import CirrusMQError, NotConfigured
from cirrusmq_client.forking import renew_in_children
from cirrusmq_client.options import check
from cirrusmq_client.steps import Steps, driven, run

PACKAGE = "cirrusmq_in_process"
LOOK_SECONDS = (0.05, 0.34)
logger = logging.getLogger("cirrusmq_client")


@dataclass(frozen=True, kw_only=True)
class InProcess:
    """How calls are made in this process.

    - `look_seconds`: between two looks of a waiting receive at each part of a queue, 0.05 to 0.34.
      Fewer seconds find a message sooner, and cost more read units while nothing is there.
    """

    look_seconds: float = LOOK_SECONDS[1]

    def __post_init__(self) -> None:
        check("look_seconds", self.look_seconds, LOOK_SECONDS)


class OwnCalls:
    """The calls of one client in this process. Safe for several threads."""

    def __init__(
        self,
        options: InProcess,
        access_key_id: str,
        ask: Callable[[], Any],
        run: Callable[[Steps[Any]], Any] = run,
    ) -> None:
        """`ask`: a step that answers the JSON of `GET /endpoints`. NotConfigured without the
        package."""
        self._options, self._access_key_id = options, access_key_id
        self._ask, self._run = ask, run
        self._package = _load()
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """In a forked child: its own connections, threads and key."""
        self._asking = threading.Lock()
        self._ask_at = 0.0
        self._named: Mapping[str, Any] | None = None
        self._process: Any = None

    @driven
    def begin(self, method: str, path: str) -> Steps[Any]:
        """A call with its repetitions; None if all of it goes by the URL."""
        if method != "POST":
            return None
        if time.monotonic() >= self._ask_at:
            yield from self._learn()
        process = self._process
        return None if process is None else process.begin(method, path)

    def close(self) -> None:
        """Ends the waits of calls that are under way."""
        if self._process is not None:
            self._process.close()

    def _learn(self) -> Steps[None]:
        # One caller asks; the others go on as before.
        if not self._asking.acquire(blocking=False):
            return
        try:
            self._ask_at = time.monotonic() + ASKED_AGAIN_SECONDS
            told = yield self._ask
            self._open(told.get("in_process") if isinstance(told, dict) else None)
        except CirrusMQError:
            self._ask_at = time.monotonic() + REST_SECONDS
        except BaseException:
            self._ask_at = 0.0  # cancelled: the next caller asks
            raise
        finally:
            self._asking.release()

    def _open(self, named: Mapping[str, Any] | None) -> None:
        """Have the tables that the service names now, or none."""
        if named == self._named:
            return
        self._named, self._process = named, None
        if named is None:
            return
        try:
            options = self._options
            self._process = self._package.open_process(
                named, self._access_key_id, options.look_seconds
            )
        except Exception as error:
            logger.warning("calls go by the service's URL: %r", error)


def _load() -> Any:
    # By its name: the client knows nothing of the service, of which the package has the code.
    try:
        package = importlib.import_module(PACKAGE)
    except ImportError as error:
        raise NotConfigured(
            "in_process needs more packages: pip install cirrusmq-client[in-process]"
        ) from error
    from cirrusmq_client import __version__

    if package.__version__ != __version__:
        raise NotConfigured(
            f"in_process: cirrusmq-in-process is of version {package.__version__},"
            f" cirrusmq-client of {__version__}: install the same"
        )
    return package
