"""Playing scenes: their actors work in threads, the rest is drained, and all is judged."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Protocol

from cirrusmq_local.judging.cancellers import Canceller
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.consumers import Receiver, act, take
from cirrusmq_local.judging.deployment import Left
from cirrusmq_local.judging.half_producers import Checker, HalfProducer
from cirrusmq_local.judging.history import Call
from cirrusmq_local.judging.log_readers import LogReader
from cirrusmq_local.judging.operators import Operator
from cirrusmq_local.judging.pausers import Pauser
from cirrusmq_local.judging.places import Place
from cirrusmq_local.judging.producers import Sender
from cirrusmq_local.judging.rewinders import GroupRewinder, Opener, open_group, open_receiver
from cirrusmq_local.judging.scenario import LATE, Cast, Scenario
from cirrusmq_local.verifying.played import Played
from cirrusmq_local.verifying.promises import judge
from cirrusmq_local.verifying.remote import Remote, Service

MAX_AT_ONCE = 5
"""Scenes that are played at the same time."""
DRAIN_SECONDS = 120
"""Time without a message after which a place that is not empty is given up."""
MAX_DRAIN_SECONDS = 300
"""Time after which a place is given up that always has another message."""
QUIET_ROUNDS = 4
"""Rounds with all counts at 0 and no message, before a place is taken for empty."""
_ROUND_SECONDS = 0.5
MAX_OPENS = 60
LOG_SECONDS = 7
"""Readers of a log are shown the last messages by then."""


class _Part(Protocol):
    def step(self, number: int, draw: Random) -> None: ...


PARTS: dict[str, Callable[[Any, Scenario, Cast], _Part]] = {
    "sender": Sender,
    "publisher": Sender,
    "receiver": Receiver,
    "canceller": Canceller,
    "guest": Sender,
    "opener": Opener,
    "group rewinder": GroupRewinder,
    "rewinder": Operator,
    "redriver": Operator,
    "purger": Operator,
    "pauser": Pauser,
    "log reader": LogReader,
    "half producer": HalfProducer,
    "checker": Checker,
}


class Scene:
    """One scene at a service."""

    def __init__(
        self,
        service: Service,
        name: str,
        scenario: Scenario,
        prefix: str,
        seed: int,
        guest: Service | None = None,
    ) -> None:
        """guest: as of `Remote`."""
        self.name = name
        self._service, self._guest = service, guest
        self._scenario = scenario
        self.remote = Remote(service, f"{prefix}-{name.replace(' ', '-')}-", seed, guest)
        self.played = Played(name, scenario, self.remote)
        self._parts: list[tuple[Cast, _Part]] = []

    def make(self) -> None:
        """Make its queues, receivers, topic and subscriptions."""
        for name, attributes in self._scenario.queues.items():
            self._put(f"/queues/{self.remote.prefix}{name}", self._own(attributes))
        for name in self._scenario.receivers:
            self._put(f"/queues/{self.remote.prefix}orders/receivers/{name}", {})
        if self._scenario.subscriptions:
            topic = f"/topics/{self.remote.prefix}news"
            self._put(topic, {})
            for name, attributes in self._scenario.subscriptions.items():
                self._put(f"{topic}/subscriptions/{name}", self._own(attributes))
        self._let_guests_send()
        for cast in self._scenario.cast:
            self._parts.append((cast, PARTS[cast.part](self.remote, self._scenario, cast)))

    def play(self, seconds: float) -> None:
        """Let all actors work for a while."""
        over = self.remote.stage.over
        threads = [
            threading.Thread(target=self._live, args=part, daemon=True) for part in self._parts
        ]
        for thread in threads:
            thread.start()
        over.wait(seconds)
        over.set()
        for thread in threads:
            thread.join(120)
        over.clear()
        self._finish()

    def drain(self) -> None:
        """Receive and delete the rest; a place that is not emptied in time is noted."""
        played, remote = self.played, self.remote
        played.begun_ms = remote.stage.now_ms()
        client = Client("drain")
        for place in self._scenario.places:
            played.left[place.name] = Left(self._kept(place))
        last = time.monotonic() + MAX_DRAIN_SECONDS
        ends, quiet = time.monotonic() + DRAIN_SECONDS, 0
        while quiet < QUIET_ROUNDS and time.monotonic() < min(ends, last):
            came = sum(self._take_all(client, place) for place in self._scenario.places)
            kept = {place.name: self._kept(place) for place in self._scenario.places}
            quiet = 0 if came or any(kept.values()) else quiet + 1
            ends = time.monotonic() + DRAIN_SECONDS if came else ends
            played.undrained = [name for name, count in kept.items() if count]
            if not came:
                time.sleep(_ROUND_SECONDS)
        if quiet >= QUIET_ROUNDS:
            played.undrained = []
        readers = [part for _, part in self._parts if isinstance(part, LogReader)]
        if readers:
            time.sleep(LOG_SECONDS)
        for reader in readers:
            reader.finish()

    def judge(self) -> None:
        """Check every promise that its calls can show."""
        judge(self.played)

    def remove(self) -> None:
        """Remove its queues and topics."""
        prefix = self.remote.prefix
        if self._scenario.subscriptions:
            self._service.ask("DELETE", f"/topics/{prefix}news")
        for name in reversed(list(self._scenario.queues)):
            self._service.ask("DELETE", f"/queues/{prefix}{name}")

    def _let_guests_send(self) -> None:
        """Grant the other account the sends of its parts."""
        for place in {cast.place for cast in self._scenario.cast if cast.part == "guest"}:
            kind, permission = ("topics", "publish") if place.topic else ("queues", "send")
            assert self._guest is not None
            path = f"/{kind}/{self.remote.prefix}{place.name}/grants/{self._guest.account}"
            self._put(path, {"permission": permission})

    def _put(self, path: str, body: dict[str, Any]) -> None:
        self._service.ask("PUT", path, body)

    def _own(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Attributes with the names that queues have at the service."""
        prefix, own = self.remote.prefix, dict(attributes)
        if own.get("protocol") == "queue":
            own["endpoint"] = prefix + own["endpoint"]
        if "dead_letter_queue" in own:
            own["dead_letter_queue"] = prefix + own["dead_letter_queue"]
        if "dead_letter" in own:
            letter = own["dead_letter"]
            own["dead_letter"] = {**letter, "queue": prefix + letter["queue"]}
        return own

    def _live(self, cast: Cast, part: _Part) -> None:
        stage, chances = self.remote.stage, self.remote.chaos
        number = 0
        try:
            while not stage.over.is_set():
                draw = chances.rng(cast.name, number)
                stage.pause(draw.randrange(2 * self._scenario.pause_ms + 1))
                part.step(number, draw)
                number += 1
        except Exception:
            self.played.errors.append(f"{cast.name}: {traceback.format_exc(limit=-3)}")

    def _open_late(self) -> None:
        """Make the receiver or group that begins with earlier messages, if nobody has."""
        client = Client("opener at the end")
        tries = MAX_OPENS if self._scenario.early or self._scenario.late else 0
        for _ in range(tries):
            made: Call = (
                open_receiver(self.remote, client, LATE.name)
                if self._scenario.early
                else open_group(self.remote, client, "news/late", self._scenario.late)
            )
            if made.known:
                return
            time.sleep(_ROUND_SECONDS)

    def _finish(self) -> None:
        self._open_late()
        for _, part in self._parts:
            if isinstance(part, Pauser):
                part.finish()
        for _, part in self._parts:
            if isinstance(part, Checker):
                for _ in range(3):
                    time.sleep(1)
                    part.finish()
        self.remote.stage.pause(1_000)

    def _kept(self, place: Place) -> int:
        """Messages of a place, by its counts."""
        prefix, inner = self.remote.prefix, place.name.partition("/")[2]
        if place.topic:
            path = f"/topics/{prefix}{place.holder}/subscriptions/{inner}"
        elif place.receiver:
            path = f"/queues/{prefix}{place.holder}/receivers/{inner}"
        else:
            path = f"/queues/{prefix}{place.holder}"
        counts = self._service.ask("GET", path)["counts"]
        self.played.estimated |= bool(counts.get("approximate"))
        return sum(int(counts.get(name) or 0) for name in ("active", "inactive", "delayed"))

    def _take_all(self, client: Client, place: Place) -> int:
        came = 0
        for _ in range(100):
            call = take(self.remote, client, place, {"max": 16, "timeout": 60, "wait": 0.1})
            if not call.known or not call.answer:
                break
            for _ in range(5):
                if act(self.remote, client, place, "delete", call.answer, {}).known:
                    break
            came += len(call.answer)
            self.played.left[place.name].received += len(call.answer)
        return came


def turned(names: list[str], seed: int) -> list[str]:
    """The names in a circle, from one by the seed: the first waves have no fault of the machine."""
    first = MAX_AT_ONCE * seed % max(1, len(names))
    return names[first:] + names[:first]


def waves(names: list[str]) -> Iterator[list[str]]:
    """Scenes in groups that are played together."""
    for first in range(0, len(names), MAX_AT_ONCE):
        yield names[first : first + MAX_AT_ONCE]
