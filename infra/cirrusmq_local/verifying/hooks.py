"""URLs of this machine that fail now and then, or for a while, and the messages that they must get.

failing URL           publish ── 500 ── retry ── 204              three posts in ten
URL with a breaker    publish ── 500 500 … open ── a try ── 204   all of the first third of a wave
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cirrusmq_local.judging.check_breakers import check_breakers
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.history import Violation
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import Book
from cirrusmq_local.testing import Delivery, Subscriber
from cirrusmq_local.verifying.played import Judged
from cirrusmq_local.verifying.remote import Remote, Service

PROMISE, BREAKERS = "every-subscription", "breakers"
FAILING, MAX_FAILURES = 0.3, 5
"""The share of posts that are answered 500, and the most of one message: it has six retries."""
PUBLISHERS = 2
DELIVERY_SECONDS = 60
_ROUTE = "POST /topics/{topic}/messages"
_WELL_AFTER = 0.4
"""The share of a wave behind which the URL with a breaker takes every post."""
_HOOK = "hook"


@dataclass
class Posted(Judged):
    """The published messages, and when the URL took each."""

    published: dict[str, float] = field(default_factory=dict)
    """Id -> when its publish began, of answered ones."""
    taken: dict[str, float] = field(default_factory=dict)
    unsigned: int = 0
    posts: int = 0

    def delays(self) -> list[float]:
        """Seconds from a publish to its first taking."""
        return [
            at - self.published[each] for each, at in self.taken.items() if each in self.published
        ]


class Hooks:
    """A topic with one subscription by HTTP, its publishers, and its listener."""

    name = "failing URL"
    attributes: ClassVar[dict[str, Any]] = {
        "retry": {"policy": "custom", "waits": [0.5, 1, 1, 2, 2, 4], "jitter": 0.2}
    }

    def __init__(self, service: Service, prefix: str, seed: int) -> None:
        self._service = service
        own = self.name.replace(" ", "-")
        self.remote = Remote(service, f"{prefix}-{own}-", seed)
        self.disturbed = False
        """True if a fault of the machine may have ended a function at work."""
        self.posted = Posted()
        self._failures: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._secret = ""
        self._listener = Subscriber(self._answer)

    def make(self) -> None:
        """Make the topic and the subscription, and listen."""
        self._listener.__enter__()
        topic, prefix = f"/topics/{self.remote.prefix}news", self.remote.prefix
        self._service.ask("PUT", topic, {})
        self._service.ask("PUT", f"/queues/{prefix}dead", {"partitions": 1})
        made = self._service.ask(
            "PUT",
            f"{topic}/subscriptions/{_HOOK}",
            {
                "protocol": "http",
                "endpoint": self._listener.url(_HOOK),
                "dead_letter_queue": f"{prefix}dead",
                **self.attributes,
            },
        )
        self._secret = str(made.get("signing_secret") or "")

    def play(self, seconds: float) -> None:
        """Publish for a while."""
        ends = time.monotonic() + seconds
        threads = [
            threading.Thread(target=self._publish, args=(number, ends), daemon=True)
            for number in range(PUBLISHERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def drain(self) -> None:
        """Wait until the URL took everything, without failing any more."""
        ends = time.monotonic() + DELIVERY_SECONDS
        while time.monotonic() < ends and self._missing():
            time.sleep(0.2)

    def judge(self) -> None:
        """Note each message that never came, and posts without a good signature."""
        told = [f"lost: {each} was never taken by its URL" for each in self._missing()]
        if self.posted.unsigned:
            text = f"{self.posted.unsigned} posts without a signature by the subscriber's secret"
            told.append(text)
        sound = sum(not call.faults for call in self.remote.history.calls)
        self.posted.note(PROMISE, sound, map(Violation, told))

    def remove(self) -> None:
        """Stop listening, and remove the topic and the queue."""
        self._listener.__exit__(None, None, None)
        self._service.ask("DELETE", f"/topics/{self.remote.prefix}news")
        self._service.ask("DELETE", f"/queues/{self.remote.prefix}dead")

    def _missing(self) -> list[str]:
        with self._lock:
            return [each for each in self.posted.published if each not in self.posted.taken]

    def _publish(self, number: int, ends: float) -> None:
        client, step = Client(f"publisher{number}"), 0
        while time.monotonic() < ends:
            begun = time.monotonic()
            labels = [f"hook.{number}.{step}.{index}" for index in range(1 + step % 3)]
            body = {"messages": [{"body": label} for label in labels]}
            call = self.remote.http(
                client, "publish", "news", {"labels": labels}, _ROUTE, {"topic": "news"}, body
            )
            if call.known:
                with self._lock:
                    self.posted.published |= {each["id"]: begun for each in call.answer["messages"]}
            step += 1
            time.sleep(0.3)

    def _answer(self, delivery: Delivery) -> int:
        now = time.monotonic()
        with self._lock:
            self.posted.posts += 1
            if self._secret and not delivery.is_signed(self._secret):
                self.posted.unsigned += 1
            if self._fails(delivery.message_id):
                return 500
            self.posted.taken.setdefault(delivery.message_id, now)
        return 204

    def _fails(self, message_id: str) -> bool:
        fails = self._failures[message_id] < MAX_FAILURES and self._random.random() < FAILING
        self._failures[message_id] += fails
        return fails


class BrokenHooks(Hooks):
    """A URL that fails every post for a while, and its subscription has a breaker."""

    name = "URL with a breaker"
    attributes: ClassVar[dict[str, Any]] = {
        "retry": {"policy": "custom", "waits": [1] * 40, "jitter": 0.2},
        "breaker": {"share": 0.5},
        "max_in_flight": 4,
    }

    def play(self, seconds: float) -> None:
        """Publish for a while; the URL is well behind a part of it."""
        self._well_at = time.monotonic() + _WELL_AFTER * seconds
        super().play(seconds)

    def judge(self) -> None:
        """As of any URL; and the order of its posts shows what the breaker does."""
        super().judge()
        if self.disturbed:
            return  # a worker that ends loses counts and waits
        scenario = Scenario(
            family=self.name,
            queues={},
            subscriptions={_HOOK: self.attributes},
            cast=(),
            pause_ms=0,
            big_bodies=False,
            attempts=0,
            deduplication=0,
            unfailing=True,
        )
        found = check_breakers(scenario, Book(self.remote.history))
        self.posted.note(BREAKERS, self.posted.posts, found)

    def _answer(self, delivery: Delivery) -> int:
        history, now_ms = self.remote.history, self.remote.stage.now_ms
        given = {"id": delivery.message_id}
        call = history.begin("listener", "post", _HOOK, given, now_ms())
        status = super()._answer(delivery)
        history.end(call, "answered" if status < 400 else "refused", status, now_ms())
        return status

    def _fails(self, message_id: str) -> bool:
        return time.monotonic() < self._well_at
