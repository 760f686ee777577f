"""URLs of this machine that fail now and then, or for a while, and the messages that they must get.

failing URL           publish ── 500 ── retry ── 204              three posts in ten
URL with a breaker    publish ── 500 500 … open ── a try ── 204   all of the first third of a wave
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cirrusmq_local.judging.check_breakers import check_breakers
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.history import Violation
from cirrusmq_local.judging.tracks import Book
from cirrusmq_local.testing import Delivery, Subscriber
from cirrusmq_local.verifying.failing import BrokenPart, FailingPart
from cirrusmq_local.verifying.played import Judged
from cirrusmq_local.verifying.remote import Remote, Service

PROMISE, BREAKERS = "every-subscription", "breakers"
DELIVERY_SECONDS = 60
_ROUTE = "POST /topics/{topic}/messages"
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


class Hooks(FailingPart):
    """A topic with one subscription by HTTP, its publishers, and its listener."""

    name = "failing URL"
    max_failures = 5  # a message has six retries
    attributes: ClassVar[dict[str, Any]] = {
        "retry": {"policy": "custom", "waits": [0.5, 1, 1, 2, 2, 4], "jitter": 0.2}
    }

    def __init__(self, service: Service, prefix: str, seed: int) -> None:
        super().__init__(seed)
        self._service = service
        own = self.name.replace(" ", "-")
        self.remote = Remote(service, f"{prefix}-{own}-", seed)
        self.posted = Posted()
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

    def _send(self, number: int, ends: float) -> None:
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


class BrokenHooks(BrokenPart, Hooks):
    """A URL that fails every post for a while, and its subscription has a breaker."""

    name = "URL with a breaker"
    attributes: ClassVar[dict[str, Any]] = {
        "retry": {"policy": "custom", "waits": [1] * 40, "jitter": 0.2},
        "breaker": {"share": 0.5},
        "max_in_flight": 4,
    }

    def judge(self) -> None:
        """As of any URL; and the order of its posts shows what the breaker does."""
        super().judge()
        if self.disturbed:
            return  # a worker that ends loses counts and waits
        scenario = self._scenario(queues={}, subscriptions={_HOOK: self.attributes})
        found = check_breakers(scenario, Book(self.remote.history))
        self.posted.note(BREAKERS, self.posted.posts, found)

    def _answer(self, delivery: Delivery) -> int:
        history, now_ms = self.remote.history, self.remote.stage.now_ms
        given = {"id": delivery.message_id}
        call = history.begin("listener", "post", _HOOK, given, now_ms())
        status = super()._answer(delivery)
        history.end(call, "answered" if status < 400 else "refused", status, now_ms())
        return status
