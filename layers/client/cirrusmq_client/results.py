"""A handler's results for a message. Returning normally is `Ack`."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Ack:
    """The message is done: delete it."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Again, `after` so many seconds; else after the next wait of the source's retry policy."""

    after: float | None = None

    @property
    def delay_seconds(self) -> int | None:
        """Whole seconds, as the service takes them; 0 to 43,200."""
        if self.after is None:
            return None
        return min(43_200, max(0, math.ceil(self.after)))


@dataclass(frozen=True, slots=True)
class Wait(Retry):
    """The library's own wait: up to `after`, and half as long at least, drawn for each call."""

    @property
    def delay_seconds(self) -> int | None:
        """Whole seconds; messages of one call wait together, so that they move together."""
        longest = Retry(self.after).delay_seconds
        return None if longest is None else random.randint((longest + 1) // 2, longest)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The message is hopeless: to the dead-letter queue, with a reason of ≤ 256 characters."""

    reason: str | None = None


Result: TypeAlias = Ack | Retry | DeadLetter


def read_result(value: object, none: Result) -> Result:
    """A handler's return value as a result; `none` for None."""
    if value is None:
        return none
    return value if isinstance(value, Ack | Retry | DeadLetter) else Ack()


def read_results(value: object, count: int, none: Result) -> list[Result]:
    """A result for each message of a batch, from one for all or from a list; ValueError."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return [read_result(value, none)] * count
    if len(value) != count:
        raise ValueError(f"the handler answered {len(value)} results for {count} messages")
    return [read_result(entry, none) for entry in value]
