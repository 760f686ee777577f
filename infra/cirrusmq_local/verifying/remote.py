"""A running service as the actors call it: by HTTP, in real time, each call noted."""

from __future__ import annotations

import json
import random
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from cirrusmq_local.judging.clients import ACCOUNT, GUEST, Client
from cirrusmq_local.judging.history import Call, History, Outcome

T = TypeVar("T")
LOST = "HTTP: ghost"
"""The fault of a call that was not answered: it may have any effect, at any later time."""
TIMEOUT_SECONDS = 40
MAX_DRIFT_MS = 1_000
"""Most drift of the service's clock against this machine's; beyond it times show nothing. Up to it
a service notes a call's work at a time before the call began, as this machine has it."""
_THROTTLED = 429


class ServiceGone(ValueError):
    """The service does not answer any more."""


class SharedHistory(History):
    """A history that several threads write."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def tick(self) -> int:
        """The number of a new moment."""
        with self._lock:
            self.moment += 1
            return self.moment

    def begin(self, actor: str, kind: str, place: str, given: dict[str, Any], now_ms: int) -> Call:
        """Note that a call begins."""
        with self._lock:
            self.moment += 1
            call = Call(actor, kind, place, given, self.moment, now_ms, unsure_ms=MAX_DRIFT_MS)
            self.calls.append(call)
            return call


class RealTime:
    """The service's time, by this machine's clock."""

    def __init__(self, offset_ms: int = 0) -> None:
        """offset_ms: how far the service's clock is ahead of this machine's."""
        self.offset_ms = offset_ms
        self.over = threading.Event()
        """Set when no pause is to last any longer."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as the service has them."""
        return time.time_ns() // 1_000_000 + self.offset_ms

    def pause(self, ms: int) -> None:
        """Sleep, at most until all is over."""
        self.over.wait(ms / 1_000)

    def side_by_side(self, bodies: Sequence[Callable[[], T]]) -> list[T]:
        """Run functions in threads."""
        with ThreadPoolExecutor(len(bodies)) as threads:
            return [done.result() for done in [threads.submit(body) for body in bodies]]


class Chances:
    """Random numbers of a seed and a name."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def draw(self, actor: str, *numbers: int) -> int:
        """32 bits."""
        return zlib.crc32(f"{actor} {numbers}".encode(), self._seed & 0xFFFFFFFF)

    def rng(self, actor: str, step: int) -> random.Random:
        """The random numbers of a step."""
        return random.Random(f"{self._seed} {actor} {step}")


@dataclass
class Reach:
    """The state of the way to a service, for all of its keys."""

    gone: bool = False
    """True if it did not answer for long: then it is asked once, to end soon."""


@dataclass
class Service:
    """The address and key of a service, and the bounds of its clocks."""

    url: str
    authorization: str
    account: str = ""
    """The account of the key, as messages name it."""
    offset_ms: int = 0
    max_skew_ms: int = 0
    """How far its clocks may be off from `offset_ms`."""
    verify: Any = True
    """As httpx takes it."""
    proxy: str | None = None
    trust_env: bool = False
    dialect_url: str | None = None
    """The endpoint for SDKs of other services; None if it is not known."""
    reach: Reach = field(default_factory=Reach)
    clients: list[httpx.Client] = field(default_factory=list, init=False)
    _held: threading.local = field(default_factory=threading.local, init=False)

    def as_other(self, authorization: str) -> Service:
        """The same service with another key, and other connections."""
        return Service(self.url, authorization, verify=self.verify, reach=self.reach)

    def client(self) -> httpx.Client:
        """This thread's client."""
        client: httpx.Client | None = getattr(self._held, "client", None)
        if client is None:
            client = self._held.client = httpx.Client(
                base_url=self.url,
                headers={"authorization": self.authorization},
                timeout=TIMEOUT_SECONDS,
                trust_env=self.trust_env,
                verify=self.verify,
                proxy=self.proxy,
            )
            self.clients.append(client)
        return client

    def ask(self, method: str, path: str, body: object = None, tries: int = 60) -> Any:
        """A call of the frame of a run, which is repeated while nobody answers it.

        Raises ValueError if it is refused, ServiceGone if nobody answers.
        """
        answered = False
        for number in range(1 if self.reach.gone else tries):
            try:
                answer = self.client().request(method, path, json=body)
            except httpx.TransportError:
                time.sleep(0.5)
                continue
            answered = True
            if answer.status_code < 400 or (answer.status_code == 404 and method == "DELETE"):
                return answer.json() if answer.content else None
            if answer.status_code < 500 and answer.status_code != _THROTTLED:
                raise ValueError(f"{method} {path}: {_refusal(answer)}")
            time.sleep(min(2.0, 0.1 * 2**number))
        if not answered:
            self.reach.gone = True
            raise ServiceGone(f"{method} {path}: nobody answers at {self.url}")
        raise ValueError(f"{method} {path}: only errors of the service in {tries} tries")

    def close(self) -> None:
        """Close all clients."""
        for client in self.clients:
            client.close()


class Remote:
    """A service as one scene calls it: names have a prefix there, and none in the history."""

    receive_seconds = 30

    def __init__(
        self, service: Service, prefix: str, seed: int, guest: Service | None = None
    ) -> None:
        """guest: the service with the key of the account that sends by a grant."""
        self._services = {ACCOUNT: service}
        if guest is not None:
            self._services[GUEST] = guest
        self.prefix = prefix
        self.history: History = SharedHistory()
        self.took_place: dict[str, bool] = {}
        self.stage = RealTime(service.offset_ms)
        self.chaos = Chances(seed)
        self.max_skew_ms = service.max_skew_ms
        self.history.start_ms = self.stage.now_ms()

    def http(
        self,
        client: Client,
        kind: str,
        place: str,
        given: dict[str, Any],
        route: str,
        path: dict[str, str],
        body: object = None,
        query: dict[str, str] | None = None,
        read: Callable[[Call, Any], Any] = lambda call, answer: answer,
    ) -> Call:
        """Make a call and note it; one that is not answered may have done anything."""
        method, _, template = route.partition(" ")
        for name, value in path.items():
            own = value if name in ("id", "receiver", "subscription") else self._own(value)
            template = template.replace(f"{{{name}}}", own)
        call = self.history.begin(client.name, kind, place, given, self.stage.now_ms())
        try:
            service = self._services[client.account]
            reply = service.client().request(method, template, json=body, params=query)
        except httpx.TransportError:
            call.faults.append(LOST)
            self._end(call, "failed", None)
            return call
        if reply.status_code >= 500:
            call.faults.append(LOST)
            self._end(call, "failed", None)
        elif reply.status_code >= 400:
            told = reply.json()
            self._end(call, "refused", f"{told['code']} {told['detail'] or ''}".strip())
        else:
            answer = json.loads(reply.text.replace(self.prefix, "")) if reply.content else None
            if isinstance(answer, dict):
                self._as_ours(answer.get("messages"))
            ended_ms = self.stage.now_ms()
            self.history.end(call, "answered", read(call, answer), ended_ms)
        return call

    def _as_ours(self, messages: object) -> None:
        """Name the account as the actors do."""
        for each in messages if isinstance(messages, list) else ():
            for name, service in self._services.items():
                if isinstance(each, dict) and each.get("sender") == service.account:
                    each["sender"] = name

    def _own(self, ref: str) -> str:
        """A queue or topic by its name at the service; another account's has that in front."""
        account, _, name = ref.rpartition(":")
        return (
            f"{self._services[account].account}:{self.prefix}{name}"
            if account
            else (self.prefix + name)
        )

    def _end(self, call: Call, outcome: Outcome, answer: Any) -> None:
        self.history.end(call, outcome, answer, self.stage.now_ms())


def _refusal(answer: httpx.Response) -> str:
    try:
        told = answer.json()
        return f"{told['code']} {told['detail'] or ''}".strip()
    except (ValueError, KeyError, TypeError):
        return f"{answer.status_code} {answer.text}"


def measure(service: Service, queue: str) -> None:
    """Learn the account's name, and how far the service's clock is off, by sends to a queue.

    here     begun ──────────────── ended          the offset is between sent_at - ended
    there            sent_at                                        and sent_at - begun
    """
    from cirrusmq.base.timestamps import parse_time

    low, high = -(1 << 60), 1 << 60
    for _ in range(8):
        begun = time.time_ns() // 1_000_000
        told = service.ask("POST", f"/queues/{queue}/messages", {"messages": [{"body": "clock"}]})
        ended = time.time_ns() // 1_000_000
        sent_ms = parse_time("sent_at", told["messages"][0]["sent_at"])
        low, high = max(low, sent_ms - ended - 1), min(high, sent_ms - begun + 1)
    service.offset_ms = 0 if low <= 0 <= high else (low + high) // 2
    service.max_skew_ms = max(abs(high - low) // 2 + 1, 1)
    asked: Mapping[str, Any] = {"max": 1, "wait_seconds": 5}
    held = service.ask("POST", f"/queues/{queue}/messages/receive", asked)["messages"]
    service.account = held[0]["sender"] if held else ""
