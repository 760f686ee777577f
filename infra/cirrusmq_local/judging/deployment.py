"""A deployment as its clients and their judges know it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.history import Call, History

T = TypeVar("T")


@dataclass(slots=True)
class Left:
    """A place's messages when all clients had stopped."""

    kept: int
    """By the count that answers show."""
    received: int = 0


class Remaining(Protocol):
    """The messages that were left at the end of a run."""

    begun_ms: int
    """When receiving them began."""
    left: dict[str, Left]
    """By the names of their places."""


class Bounds(Protocol):
    """Facts about the machines behind a service that checks need."""

    max_skew_ms: int
    """How far a clock of theirs can be off."""

    @property
    def receive_seconds(self) -> int:
        """Seconds for which a receive may work, even after its caller has an error."""


class Pace(Protocol):
    """The time as actors see it."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""

    def pause(self, ms: int) -> None:
        """Do nothing for a while."""

    def side_by_side(self, bodies: Sequence[Callable[[], T]]) -> list[T]:
        """Run functions at the same time; returns their results."""


class Draws(Protocol):
    """Random numbers that belong to a name."""

    def draw(self, actor: str, *numbers: int) -> int:
        """32 bits."""


class Deployment(Protocol):
    """A service that actors call."""

    history: History
    took_place: dict[str, bool]
    """Handle of a half message -> whether its producer's own transaction took place."""

    @property
    def stage(self) -> Pace:
        """The time."""

    @property
    def chaos(self) -> Draws:
        """The source of random numbers."""

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
        read: Callable[[Call, Any], Any] = ...,
    ) -> Call:
        """Make a call and note it; `read` makes of its answer what the history keeps."""
