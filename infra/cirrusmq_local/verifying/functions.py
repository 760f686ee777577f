"""Queues that name a function: it fails now and then, or at all for a while, and has a breaker.

failing function           send ── fails ── 1 s ── done         three messages in ten, three times
function with a breaker    send ── fails, fails … open ── a try ── done   all of a wave's first part

The function runs in the service and asks here what it does, so the run sees each of its calls.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from cirrusmq_local.judging.check_function_breakers import check_function_breakers
from cirrusmq_local.judging.check_invoking import check_handing
from cirrusmq_local.judging.check_replacing import read_sent
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.history import Call, Violation
from cirrusmq_local.judging.places import NEVER_MS, Delivery, handed
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import HANDED, Book
from cirrusmq_local.verifying.failing import BrokenPart, FailingPart
from cirrusmq_local.verifying.function import GIVEN, NAME
from cirrusmq_local.verifying.played import Judged
from cirrusmq_local.verifying.remote import Remote, Service

PROMISE, BREAKERS = "functions", "breakers"
WORK = "work"
"""In the place of all workers of the service: it is no call of the run."""
DONE_SECONDS = 90
"""Time in which the last message is done; a breaker that is open tries once in 32 s."""
LOST_SECONDS = 210
"""The same behind a fault: the sweep finds messages of a lost worker within about three minutes."""
GONE_SECONDS = 10
"""Time in which a message that is done is deleted."""


class Functions(FailingPart):
    """A queue whose messages a function gets, its senders, and the listener that it asks."""

    name = "failing function"
    max_failures = 3
    needs: ClassVar[str] = f"the service was not started with --function {GIVEN}"
    place = "orders"
    """The queue, or `topic/subscription`, as the history names it."""
    attributes: ClassVar[dict[str, Any]] = {"partitions": 1, "visibility_timeout_seconds": 1}
    groups: ClassVar[tuple[str | None, ...]] = (None,)
    """Groups that its messages are drawn from."""
    lasts: ClassVar[tuple[float, ...]] = (0.0, 0.0, 0.02, 0.2)
    """Seconds that a call may take."""
    send_seconds = 0.3
    """Time between two sends of one sender."""
    invoke: ClassVar[dict[str, Any]] = {"max_concurrency": 2, "batch": 4, "timeout_seconds": 20}

    def __init__(self, service: Service, prefix: str, seed: int) -> None:
        super().__init__(seed)
        self._service = service
        self.remote = Remote(service, f"{prefix}-{self.name.replace(' ', '-')}-", seed)
        self.posted = Judged()
        self._attributes = {**self.attributes, "invoke": {"function": NAME, **self.invoke}}
        self._lock = threading.Lock()
        self._sent: set[str] = set()
        self._done: set[str] = set()
        self._listener = _Listener(self)
        self._worker: Call | None = None
        self._left = 0
        """Messages that are there though all are done."""

    def make_by(self, maker: Service, admin: Service) -> None:
        """Make the queue, and listen. Raises ValueError if the service has not the function.

        maker: an administrator of the run's account, who is removed behind this. admin: the one
        who started the run.
        """
        self._make(maker)
        now_ms = self.remote.stage.now_ms()
        self._worker = self.remote.history.begin("service", WORK, self.place, {}, now_ms)
        threading.Thread(target=self._listener.serve_forever, args=(0.05,), daemon=True).start()

    def drain(self) -> None:
        """Wait until all is done, and gone."""
        done, gone = (LOST_SECONDS,) * 2 if self.disturbed else (DONE_SECONDS, GONE_SECONDS)
        ends = time.monotonic() + done
        while time.monotonic() < ends and self._missing():
            time.sleep(0.2)
        # A worker that was killed between the function's answer and its delete leaves the message.
        ends = time.monotonic() + gone
        while (kept := self._kept()) and time.monotonic() < ends:
            time.sleep(0.2)
        self._left = 0 if self._missing() else kept
        if self._worker is not None:
            history = self.remote.history
            history.end(self._worker, "answered", None, self.remote.stage.now_ms())

    def judge(self) -> None:
        """Each message was done; without a fault of the machine, each call was as promised."""
        told = [f"lost: {each} was never done by its function" for each in self._missing()]
        if self._left:
            told.append(f"{self._left} messages that its function has done are still there")
        calls = [call for call in self.remote.history.calls if call.kind == HANDED]
        self.posted.note(PROMISE, len(calls), map(Violation, told))
        if self.disturbed:
            return  # a worker that ends loses counts, waits and answers
        scenario, book = self._as_scenario(), Book(self.remote.history)
        self.posted.note(PROMISE, 0, check_handing(scenario, book))
        self._judge_more(scenario, book, len(calls))

    def remove(self) -> None:
        """Remove the queue or topic, and stop listening."""
        if self._worker is not None:
            self._service.ask("DELETE", self._holder())
            self._listener.shutdown()
        self._listener.server_close()

    def answer(self, event: dict[str, Any]) -> dict[str, Any]:
        """Returns the function's answer to a batch."""
        history, stage = self.remote.history, self.remote.stage
        given: dict[str, Any] = {
            "failed": [],
            "untried": [],
            "until_ms": NEVER_MS,
            "noted": 0,
            "invocation": self._worker,
            "claimed_after": self._claimed_after(stage.now_ms()),
        }
        call = history.begin("worker", HANDED, self.place, given, stage.now_ms())
        given["messages"] = [handed(call, each) for each in event["Records"]]
        with self._lock:
            lasts = self._random.choice(self.lasts)
            given["failed"], given["untried"] = self._fail(given["messages"])
        time.sleep(lasts)
        given["until_ms"] = stage.now_ms()
        history.end(call, "answered", "done", stage.now_ms())
        with self._lock:
            self._done |= {each.id for each in given["messages"]} - {*given["failed"]}
        return {
            "batchItemFailures": [
                {"itemIdentifier": each, **({"tried": False} if each in given["untried"] else {})}
                for each in given["failed"]
            ]
        }

    def _make(self, maker: Service) -> None:
        maker.ask("PUT", self._path(), self._attributes)

    def _path(self) -> str:
        """The queue or subscription at the service."""
        return f"/queues/{self.remote.prefix}{self.place}"

    def _holder(self) -> str:
        """The queue, or the topic of a subscription, which is removed at the end."""
        return self._path()

    def _as_scenario(self) -> Scenario:
        return self._scenario(queues={self.place: self._attributes})

    def _judge_more(self, scenario: Scenario, book: Book, calls: int) -> None:
        """Judge what the kind of this part shows besides, by some calls of the function."""
        if "breaker" in self.invoke:
            self.posted.note(BREAKERS, calls, check_function_breakers(scenario, book))

    def _fail(self, messages: Sequence[Delivery]) -> tuple[list[str], list[str]]:
        """The ids of a call's failed messages, and the ids of the messages it did not begin."""
        return [each.id for each in messages if self._fails(each.id)], []

    def _claimed_after(self, now_ms: int) -> int:
        """A moment before a worker claimed what it hands over now.

        A message that was received before is handed over alone, so one claim may be several calls:

            worker   claims m1 m2 ── call m1 ── a rewind ── call m2        m2 comes again
        """
        since_ms = now_ms - 1_000 * int(self.invoke["timeout_seconds"])
        calls = [call for call in self.remote.history.calls if call.kind == HANDED]
        recent = (call.begun for call in calls if call.begun_ms >= since_ms)
        return min(recent, default=self.remote.history.moment)

    def _kept(self) -> int:
        counts = self._service.ask("GET", self._path())["counts"]
        return sum(int(counts.get(name) or 0) for name in ("active", "inactive", "delayed"))

    def _missing(self) -> list[str]:
        with self._lock:
            return sorted(self._sent - self._done)

    def _send(self, number: int, ends: float) -> None:
        client, step = Client(f"sender{number}"), 0
        url = f"http://127.0.0.1:{self._listener.server_port}/"
        topic, _, group = self.place.partition("/")
        holder, target = ("topic", topic) if group else ("queue", self.place)
        while time.monotonic() < ends:
            labels = [f"function.{number}.{step}.{index}" for index in range(1 + step % 3)]
            groups = [self._random.choice(self.groups) for _ in labels]
            messages: list[dict[str, Any]] = [
                {"body": f"{label} {url}"} | ({"group": group} if group else {})
                for label, group in zip(labels, groups, strict=True)
            ]
            nothing = [None for _ in labels]
            given: dict[str, Any] = {"labels": labels, "name": labels[0], "attempt": None}
            given |= dict.fromkeys(("keys", "delays", "colors"), nothing) | {"groups": groups}
            given |= {"replaces": None, "asks": None, "bounded": False}
            given |= {"tags": [[] for _ in labels], "priorities": [1 for _ in labels]}
            route, body = f"POST /{holder}s/{{{holder}}}/messages", {"messages": messages}
            call = self.remote.http(
                *(client, "send", target, given, route, {holder: target}, body), read=read_sent
            )
            if call.known:
                with self._lock:
                    self._sent |= {message_id for message_id, _ in call.answer}
            step += 1
            time.sleep(self.send_seconds)


class BrokenFunctions(BrokenPart, Functions):
    """A function that fails at everything for a while, and whose queue has a breaker."""

    name = "function with a breaker"
    invoke: ClassVar[dict[str, Any]] = {
        "max_concurrency": 1,
        "batch": 4,
        "timeout_seconds": 20,
        "breaker": {"share": 0.5},
    }


class _Listener(ThreadingHTTPServer):
    """The server that the function asks."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Listener

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", "0"))
        told = json.dumps(self.server.functions.answer(json.loads(self.rfile.read(size)))).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        with contextlib.suppress(OSError):  # the service was killed while it asked
            self.wfile.write(told)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""
