"""Sources of messages, and the paths of names in calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

from cirrusmq_client.checks import check_text


@dataclass(frozen=True)
class Queue:
    """A queue, or with `receiver` an independent receiver of it.

    Another account's queue is `account:queue`.
    """

    name: str
    receiver: str | None = None

    @property
    def path(self) -> str:
        """Path of the resource."""
        return queue_path(self.name)

    def __str__(self) -> str:
        """Returns the name in log lines."""
        queue = f"queue {self.name}"
        return queue if self.receiver is None else f"receiver {self.receiver} of {queue}"


@dataclass(frozen=True)
class Subscription:
    """A topic's pull subscription, which is a consumer group."""

    topic: str
    name: str

    @property
    def path(self) -> str:
        """Path of the resource."""
        return subscription_path(self.topic, self.name)

    def __str__(self) -> str:
        """Returns the name in log lines."""
        return f"subscription {self.name} of topic {self.topic}"


@dataclass(frozen=True)
class Topic:
    """A topic's log, which broadcasting consumers read."""

    name: str

    @property
    def path(self) -> str:
        """Path of the resource."""
        return topic_path(self.name)

    def __str__(self) -> str:
        """Returns the name in log lines."""
        return f"topic {self.name}"


Source: TypeAlias = Queue | Subscription


def source_of(source: str | Source) -> Source:
    """Returns a source; a text names a queue."""
    return Queue(source) if isinstance(source, str) else source


def queue_path(name: str) -> str:
    """Returns the path of a queue, with its name escaped."""
    return f"/queues/{part(name)}"


def topic_path(name: str) -> str:
    """Returns the path of a topic."""
    return f"/topics/{part(name)}"


def subscription_path(topic: str, name: str) -> str:
    """Returns the path of a subscription."""
    return f"{topic_path(topic)}/subscriptions/{part(name)}"


def part(text: str) -> str:
    """Returns an escaped segment of a path. A plain dot would change the path's level."""
    check_text("name", text)
    quoted = quote(text, safe=":")
    return quoted.replace(".", "%2E") if set(quoted) == {"."} else quoted
