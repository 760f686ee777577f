"""The options of a consumer, with each limit and default once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from cirrusmq_client.inputs import QueueInput, SubscriptionInput

MAX_BATCH = (1, 1_024)
MAX_AWAIT_SECONDS = (0.0, 450.0)
WAIT_SECONDS = (0.0, 30.0)


@dataclass(frozen=True, kw_only=True)
class Batches:
    """Passes lists to the handler.

    A list has `max_batch` messages, or fewer when the oldest has waited for `max_await` seconds.
    """

    max_batch: int = 32
    max_await: float = 0.0

    def __post_init__(self) -> None:
        check("max_batch", self.max_batch, MAX_BATCH)
        check("max_await", self.max_await, MAX_AWAIT_SECONDS)


class ConsumerOptions(TypedDict, total=False):
    """Further options of a consumer, beside its signature; see its docstring."""

    workers: int
    receivers: int
    prefetch: int
    wait_seconds: float
    visibility_timeout_seconds: int | None
    grace_seconds: float
    create: QueueInput | SubscriptionInput | None
    make_dead_letter_queue: bool


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `Consumer`, checked."""

    batches: Batches | None = None
    workers: int = 4
    receivers: int = 1
    prefetch: int = 16
    wait_seconds: float = 5.0
    visibility_timeout_seconds: int | None = None
    grace_seconds: float = 30.0
    create: Mapping[str, Any] | None = None
    make_dead_letter_queue: bool = True

    def __post_init__(self) -> None:
        check("workers", self.workers, (1, 1_024))
        check("receivers", self.receivers, (1, 64))
        check("prefetch", self.prefetch, (0, 1_024))
        check("wait_seconds", self.wait_seconds, WAIT_SECONDS)

    @property
    def limit(self) -> int:
        """Maximum messages of one call of a handler."""
        return 1 if self.batches is None else self.batches.max_batch

    @property
    def await_seconds(self) -> float:
        """Maximum time to gather a batch."""
        return 0.0 if self.batches is None else self.batches.max_await


def check(name: str, value: float, bounds: tuple[float, float]) -> None:
    """Raises ValueError if the value is not within the bounds, both included."""
    least, limit = bounds
    if not least <= value <= limit:
        raise ValueError(f"{name} must be {least:,} to {limit:,}")
