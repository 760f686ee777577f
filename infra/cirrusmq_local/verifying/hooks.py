"""A URL of this machine that fails for a while, and the messages that it must get."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.history import Violation
from cirrusmq_local.testing import Delivery, Subscriber
from cirrusmq_local.verifying.remote import Remote, Service

PROMISE = "every-subscription"
FAILING = 0.3
"""The share of posts that are answered 500."""
PUBLISHERS = 2
DELIVERY_SECONDS = 60
_ROUTE = "POST /topics/{topic}/messages"


@dataclass
class Posted:
    """The published messages, and when the URL took each."""

    published: dict[str, float] = field(default_factory=dict)
    """Id -> when its publish began, of answered ones."""
    taken: dict[str, float] = field(default_factory=dict)
    unsigned: int = 0
    posts: int = 0
    violations: list[tuple[str, Violation]] = field(default_factory=list)

    def delays(self) -> list[float]:
        """Seconds from a publish to its first taking."""
        return [
            at - self.published[each] for each, at in self.taken.items() if each in self.published
        ]


class Hooks:
    """A topic with one subscription by HTTP, its publishers, and its listener."""

    name = "failing URL"

    def __init__(self, service: Service, prefix: str, seed: int) -> None:
        self._service = service
        self.remote = Remote(service, f"{prefix}-hooks-", seed)
        self.posted = Posted()
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
        retry = {"policy": "custom", "waits": [0.5, 1, 1, 2, 2, 4], "jitter": 0.2}
        made = self._service.ask(
            "PUT",
            f"{topic}/subscriptions/hook",
            {
                "protocol": "http",
                "endpoint": self._listener.url("hook"),
                "retry": retry,
                "dead_letter_queue": f"{prefix}dead",
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
        for message_id in self._missing():
            self.posted.violations.append(
                (PROMISE, Violation(f"lost: {message_id} was never taken by its URL"))
            )
        if self.posted.unsigned:
            text = f"{self.posted.unsigned} posts without a signature by the subscriber's secret"
            self.posted.violations.append((PROMISE, Violation(text)))

    def remove(self) -> None:
        """Remove the topic and the queue, and stop listening."""
        self._service.ask("DELETE", f"/topics/{self.remote.prefix}news")
        self._service.ask("DELETE", f"/queues/{self.remote.prefix}dead")
        self._listener.__exit__(None, None, None)

    def _missing(self) -> list[str]:
        with self._lock:
            return [each for each in self.posted.published if each not in self.posted.taken]

    def _publish(self, number: int, ends: float) -> None:
        client, step = Client(f"publisher{number}"), 0
        while time.monotonic() < ends:
            begun = time.monotonic()
            labels = [f"hook.{number}.{step}.{place}" for place in range(1 + step % 3)]
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
            if self._random.random() < FAILING:
                return 500
            self.posted.taken.setdefault(delivery.message_id, now)
        return 204


def shown(hooks: Hooks) -> dict[str, Any]:
    """The counts of a result."""
    return {"published": len(hooks.posted.published), "posts": hooks.posted.posts}
