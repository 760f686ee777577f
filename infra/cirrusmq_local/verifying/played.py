"""The calls of a scene, and the promises that it broke."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cirrusmq_local.judging.deployment import Left
from cirrusmq_local.judging.history import Violation
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.verifying.remote import Remote


@dataclass
class Judged:
    """Promises that a part of a run beside the scenes shows."""

    violations: list[tuple[str, Violation]] = field(default_factory=list)
    """(id of the promise, how it was broken)"""
    judged: dict[str, int] = field(default_factory=dict)
    """Id of a promise -> calls that it was judged by."""

    def note(self, promise: str, calls: int, found: Iterable[Violation]) -> None:
        """A promise was judged by some calls."""
        self.judged[promise] = self.judged.get(promise, 0) + calls
        self.violations += [(promise, each) for each in found]


@dataclass
class Played:
    """A scene that is over: its calls, the rest, the broken promises."""

    name: str
    scenario: Scenario
    remote: Remote
    begun_ms: int = 0
    left: dict[str, Left] = field(default_factory=dict)
    undrained: list[str] = field(default_factory=list)
    """Places that still hold something."""
    estimated: bool = False
    """True if the service said that counts of a place were not exact."""
    violations: list[tuple[str, Violation]] = field(default_factory=list)
    """(id of the promise, how it was broken)"""
    judged: dict[str, int] = field(default_factory=dict)
    """Id of a promise -> calls that it was judged by."""
    errors: list[str] = field(default_factory=list)
    """Exceptions of actors, which are faults of ours."""
    refused: str = ""
    """How the service refused its sends, if it took none: then nothing was judged."""
