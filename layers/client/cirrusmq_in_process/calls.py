"""One call with its repetitions: where each of its tries is made.

    send       here ──> unknown ──> by the URL, with its attempt: the keys are the same
    receive    here ──> unknown ──> here, as a repetition: only this process knows the nonces
    due        by the URL without a wait ──> accepted, nothing there ──> waits here
    refused    here ──> by the URL, whose refusal counts

If the process refuses a call, the URL is asked, so that all refusals are the service's own. A
receive that deletes first does not delete twice: the results of its deletes wait for its answer.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from cirrusmq.base.errors import CirrusMQError, Unavailable
from cirrusmq.runtime.core import LeftToService
from cirrusmq_in_process import work
from cirrusmq_in_process.allowances import Right
from cirrusmq_in_process.clock import steady
from cirrusmq_in_process.conditions import Conditions
from cirrusmq_lambda.problems import describe

LATE_SECONDS = 5.0
"""A send that took longer since its time was taken is unknown: a purge may be in between."""
PROBE_WAIT_SECONDS = 1.0
"""A receive that waits longer asks the URL without a wait, and waits here."""
Body: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = tuple[int, Any]
"""The status and the JSON of an answer."""


class Call:
    """A call of one queue, from its first try to its answer."""

    def __init__(self, conditions: Conditions, queue: str, kind: str) -> None:
        self._here, self._queue, self._kind = conditions, queue, kind
        self._right: Right = "send" if kind == "send" else "receive"
        self._tried = self._by_url = False
        self._probed = self._probes = False
        self._asked = 0.0
        self._deleted: dict[str, Any] = {}

    def answer(self, body: Body) -> Answer | None:
        """The answer to a try that is made here; None: it is made by the URL."""
        again, self._tried = self._tried, True
        if self._by_url or (again and self._kind != "receive"):
            return None
        here = self._here
        if not here.works() or not here.allowances.has(self._queue, self._right):
            self._by_url = True
            return None
        try:
            return self._do(dict(body))
        except LeftToService:
            here.allowances.rest(self._queue)
        except Unavailable as error:
            if not again:
                return _problem(error)
            here.allowances.rest(self._queue)
        except CirrusMQError:
            pass  # nothing was done: the URL says so with its own words
        except (ClientError, BotoCoreError) as error:
            here.refused(self._queue, error)
        except UnicodeError:
            pass  # it cannot be sent as JSON
        self._by_url = True
        return None

    def by_url(self, body: Body) -> Body:
        """The body of a try that is made by the URL."""
        self._asked = self._here.allowances.now()
        sent = {name: held for name, held in body.items() if name != "delete" or not self._deleted}
        wait = body.get("wait_seconds", 0)
        may_wait_here = isinstance(wait, int | float) and wait > PROBE_WAIT_SECONDS
        self._probes = may_wait_here and self._may_probe()
        self._probed = self._probed or self._probes
        return {**sent, "wait_seconds": 0} if self._probes else sent

    def accepted(self, told: Any) -> Any | None:
        """The JSON of the URL's answer as the client gets it; None: the call goes on here."""
        self._here.allowances.grant(self._queue, self._right, self._asked)
        if self._kind != "receive" or not isinstance(told, dict):
            return told
        if "error" in told or told.get("messages") or not self._probes:
            return {**told, **self._deleted}
        self._deleted |= {name: told[name] for name in ("deleted", "failed") if name in told}
        self._by_url = self._tried = False
        return None

    def _may_probe(self) -> bool:
        """Returns True if the URL is asked without a wait, which is here then. Once a call."""
        here = self._here
        if self._kind != "receive" or self._probed or here.allowances.rests(self._queue):
            return False
        return here.works()

    def _do(self, body: dict[str, Any]) -> Answer:
        if self._deleted:
            body.pop("delete", None)
        core, caller = self._here.core, self._here.caller
        began = _times(core)
        if self._kind == "receive":
            deleted = work.delete_first(core, caller, self._queue, body.pop("delete", None))
            self._deleted |= deleted
            received = work.receive(core, caller, self._queue, body)
            if work.was_left(core):
                self._here.allowances.rest(self._queue)
            return 200, {**received, **self._deleted}
        status, done = work.WORK[self._kind](core, caller, self._queue, body)
        if self._kind == "send" and _is_late(began, _times(core)):
            return _problem(Unavailable("the send took long; whether it is stored is not known"))
        return status, msgspec.to_builtins(done)


def _times(core: Any) -> tuple[float, float]:
    return core.now_ms() / 1_000, steady()


def _is_late(began: tuple[float, float], ended: tuple[float, float]) -> bool:
    return any(after - before > LATE_SECONDS for before, after in zip(began, ended, strict=True))


def _problem(error: Unavailable) -> Answer:
    return 503, msgspec.to_builtins(describe(error, uuid.uuid4().hex))
