"""The HTTP API on one machine, and the functions' own URLs."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec.structs import replace

from cirrusmq.base.errors import CirrusMQError, Unavailable
from cirrusmq_local.cloud.clock import ScaledClock
from cirrusmq_local.cloud.events import (
    Answer,
    Request,
    answer_failure,
    make_event,
    make_url_event,
    read_answer,
)
from cirrusmq_local.cloud.functions import Functions, StackStoppingError
from cirrusmq_local.cloud.ids import make_id
from cirrusmq_local.cloud.invocation import FunctionError, TimedOutError
from cirrusmq_local.cloud.routing import Router
from cirrusmq_local.stack.outgoing import encode_answer
from cirrusmq_local.stack.unread import receipts_of, receives

# The API's own limits, in real time.
CALL_SECONDS = 30.0
BODY_SECONDS = 30.0
GIVING_WAY_BYTES = 64 * 1_024
"""A longer request runs in its own thread, whatever its function does."""
_HEALTH = "/health"
URLS = "/local/urls"
"""Path above the functions' own URLs: in the cloud each of these has its own host."""

_log = logging.getLogger(__name__)


class Problems(Protocol):
    """Makes the answer for an error."""

    def __call__(self, error: CirrusMQError, request_id: str, /) -> dict[str, Any]: ...


@dataclass(kw_only=True, slots=True)
class Call:
    """A request under way to its function."""

    id: str
    head_only: bool
    """True if the answer has no body (a HEAD request)."""
    began: float
    """By the monotonic clock, like `ends`: after that the call is answered without its function."""
    ends: float
    function: str = ""
    """Empty if no route matches: no function is called."""
    role: str = ""
    """The name of the function's folder."""
    event: Mapping[str, Any]
    direct: bool = False
    """True if the function is called at its own URL."""
    gives_way: bool = False
    """True if the function gives way to other calls while it waits, and needs no thread."""
    receives: bool = False
    """True if the call receives messages: only such a call ends when its client goes."""


class Gateway:
    """Routes requests to functions. Its methods may be called by any thread.

    ::

        open ──> run ─────────────────> encode ──> note
          └────────> late or stopping ──┘
    """

    def __init__(
        self,
        router: Router,
        functions: Functions,
        clock: ScaledClock,
        problems: Problems,
        *,
        call_seconds: float = CALL_SECONDS,
        body_seconds: float = BODY_SECONDS,
        trouble: Callable[[], str | None] = lambda: None,
        damage: Callable[[], str | None] = lambda: None,
        urls: Mapping[str, str] | None = None,
        giving_way: Collection[str] = (),
        note_call: Callable[[str, int, float], None] = lambda function, status, seconds: None,
        give_back: Callable[[Sequence[str]], None] = lambda receipts: None,
    ) -> None:
        """`trouble` returns the reason for which calls fail now, `damage` the part of the data that
        was lost; both return None if nothing is known.

        `urls`: functions with their own URL, by their names in it. `giving_way`: functions that
        wait for the store and the clock alone. `note_call` gets the function's folder (empty: none
        was called), status and seconds of each answer. `give_back` gets the receipts of answers
        that nobody reads.
        """
        self.body_seconds = body_seconds
        """Maximum time in which a body must arrive."""
        self._note_call, self._give_back = note_call, give_back
        self._urls = {f"{URLS}/{name}": function for name, function in (urls or {}).items()}
        self._giving_way = frozenset(giving_way)
        self._trouble, self._damage = trouble, damage
        self._router = router
        self._functions = functions
        self._clock = clock
        self._problems = problems
        self._call_seconds = call_seconds

    @property
    def functions(self) -> Functions:
        """The functions that the gateway calls."""
        return self._functions

    def open(self, request: Request) -> Call:
        """Returns the call for a request, with its function."""
        call = self._call()
        call.head_only = request.method == "HEAD"
        found = self._find(request, call.id)
        if found is not None:
            call.function, call.event, call.direct = found
            function = self._functions.find(call.function)
            call.role = function.folder.name
            call.receives = receives(request, call.role)
            small = len(request.body) <= GIVING_WAY_BYTES
            call.gives_way = small and call.function in self._giving_way
            call.ends = call.began + min(self._call_seconds, function.timeout_seconds)
        return call

    def open_refused(self) -> Call:
        """Returns a call for a request that is refused without a function."""
        return self._call()

    def run(self, call: Call) -> Answer:
        """Runs the call's function. Returns its answer, or the answer for its failure."""
        if not call.function:
            return Answer(status=404, headers=[], body=b"")
        try:
            return self._checked(call, read_answer(self._run(call)))
        except FunctionError as error:
            _log.error("%s: %s", call.event["routeKey"], error)
            return self._checked(call, answer_failure(error, direct=call.direct))
        except StackStoppingError:
            return self.stopping(call)
        except Exception:
            # An exception that a handler does not turn into a problem is a fault of ours.
            _log.exception("%s failed on %s", call.function, call.event["routeKey"])
            return self._checked(call, self._failed(call))

    def late(self, call: Call) -> Answer:
        """Returns the answer to a call whose timeout passed while its function still runs."""
        function = self._functions.find(call.function)
        if function.timeout_seconds <= self._call_seconds:
            error = TimedOutError(call.function)
            return self._checked(call, answer_failure(error, direct=call.direct))
        return self.refuse(Unavailable(f"no answer within {self._call_seconds:g} s"), call)

    def stopping(self, call: Call) -> Answer:
        """Returns the answer to a call while the stack ends."""
        return self.refuse(Unavailable("the service is stopping"), call)

    def refuse(self, error: CirrusMQError, call: Call) -> Answer:
        """Returns the answer for an error, or the reason of the trouble if there is one."""
        return self._checked(call, read_answer(self._problems(error, call.id)))

    def encode(self, call: Call, answer: Answer, *, closing: bool) -> bytes:
        """Returns the bytes of an answer. `closing`: the connection ends after it."""
        now_ms = self._clock.now_ms()
        try:
            return encode_answer(answer, call.id, now_ms, closing=closing, head_only=call.head_only)
        except ValueError:
            _log.exception("%s failed on %s", call.function, call.event["routeKey"])
            failed = self._failed(call)
            return encode_answer(failed, call.id, now_ms, closing=closing, head_only=call.head_only)

    def note(self, call: Call, answer: Answer) -> None:
        """Counts an answered call."""
        self._note_call(call.role, answer.status, time.monotonic() - call.began)

    def take_back(self, answer: Answer | None) -> None:
        """Gives the messages in an answer that nobody reads back, in a thread."""
        receipts = receipts_of(answer) if answer is not None else []
        if receipts:
            with contextlib.suppress(RuntimeError):  # the stack ends, and so do their leases
                self._functions.start(lambda: self._give_back(receipts))

    def _call(self) -> Call:
        began = time.monotonic()
        return Call(
            id=make_id(),
            head_only=False,
            began=began,
            ends=began + self._call_seconds,
            event={},
        )

    def _run(self, call: Call) -> Any:
        return self._functions.run_until_stopped(call.function, call.event)

    def _checked(self, call: Call, answer: Answer) -> Answer:
        # Reading is possible on a full disk: who asks for the service's health asks for more.
        asked = call.event.get("rawPath") == _HEALTH
        reason = self._trouble() if asked or answer.status >= 500 else None
        if reason is None:
            return self._degraded(answer) if asked and answer.status == 200 else answer
        return read_answer(self._problems(Unavailable(reason), call.id))

    def _degraded(self, answer: Answer) -> Answer:
        """Returns the answer to a health check, with the part of the data that was lost."""
        damage = self._damage()
        if damage is None:
            return answer
        told = json.loads(answer.body) | {"status": "degraded", "detail": damage}
        return replace(answer, body=json.dumps(told).encode())

    def _failed(self, call: Call) -> Answer:
        refused = read_answer(self._problems(Unavailable("the service failed"), call.id))
        return Answer(status=500, headers=refused.headers, body=refused.body)

    def _find(self, request: Request, request_id: str) -> tuple[str, dict[str, Any], bool] | None:
        """Returns the function, its event, and True if it is called at its own URL."""
        now_ms = self._clock.now_ms()
        for url, function in self._urls.items():
            if request.raw_path.startswith(f"{url}/"):
                request = replace(request, raw_path=request.raw_path.removeprefix(url))
                return function, make_url_event(request, request_id, now_ms), True
        match = self._router.match(request.method, request.raw_path)
        if match is None:
            return None
        return match.route.function, make_event(request, match, request_id, now_ms), False
