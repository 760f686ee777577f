"""Sources of messages, and the paths of names in calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

from cirrusmq_client.checks import check_text


@dataclass(frozen=True)
class Queue:
    """A queue; with `receiver`, that independent receiver of it.

    Another account's queue is `account:queue`.
    """

    name: str
    receiver: str | None = None

    @property
    def path(self) -> str:
        """Of the resource itself."""
        return queue_path(self.name)

    def __str__(self) -> str:
        """As log lines name it."""
        queue = f"queue {self.name}"
        return queue if self.receiver is None else f"receiver {self.receiver} of {queue}"


@dataclass(frozen=True)
class Subscription:
    """A topic's pull subscription: a consumer group."""

    topic: str
    name: str

    @property
    def path(self) -> str:
        """Of the resource itself."""
        return subscription_path(self.topic, self.name)

    def __str__(self) -> str:
        """As log lines name it."""
        return f"subscription {self.name} of topic {self.topic}"


@dataclass(frozen=True)
class Topic:
    """A topic's log, which broadcasting consumers read."""

    name: str

    @property
    def path(self) -> str:
        """Of the resource itself."""
        return topic_path(self.name)

    def __str__(self) -> str:
        """As log lines name it."""
        return f"topic {self.name}"


Source: TypeAlias = Queue | Subscription


def source_of(source: str | Source) -> Source:
    """A source; a text names a queue."""
    return Queue(source) if isinstance(source, str) else source


def queue_path(name: str) -> str:
    """The path of a queue, its name escaped."""
    return f"/queues/{part(name)}"


def topic_path(name: str) -> str:
    """The path of a topic."""
    return f"/topics/{part(name)}"


def subscription_path(topic: str, name: str) -> str:
    """The path of a subscription."""
    return f"{topic_path(topic)}/subscriptions/{part(name)}"


def part(text: str) -> str:
    """One segment of a path, escaped. A dot alone would climb in the path."""
    check_text("name", text)
    quoted = quote(text, safe=":")
    return quoted.replace(".", "%2E") if set(quoted) == {"."} else quoted
