"""The options of a run, and its records before they are judged as a whole."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cirrusmq_local.judging.history import Call
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.verifying.hooks import Hooks
from cirrusmq_local.verifying.parts import Part
from cirrusmq_local.verifying.played import Judged, Played


@dataclass
class Options:
    """The parts of a run."""

    id: str
    seed: int
    minutes: float
    play_seconds: float
    scenes: dict[str, Scenario]
    hooks: bool
    """True if the service can post to a URL of this machine."""
    functions: bool
    """True if it has the function that asks here."""
    usage: bool
    """True if the service's tables can be exported to this machine."""
    faults: Sequence[tuple[str, Callable[[], None]]]
    """(name, function that makes a fault and undoes it), one for each wave in turn."""
    parts: Sequence[str] = ()
    """Parts that are played beside scenes, by name (`parts.PARTS`)."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set when the run ends early: faults wait for it, and are undone at once."""


@dataclass
class Outcome:
    """The records of a run, before it is judged as a whole."""

    played: list[Played] = field(default_factory=list)
    schedules: dict[str, Judged] = field(default_factory=dict)
    """The promises that schedules showed, by the part's name."""
    hooks: list[Hooks | Part] = field(default_factory=list)
    """URLs of this machine, functions of the service that ask here, and notifications."""
    faults: Counter[str] = field(default_factory=Counter)
    windows: list[tuple[str, int, int]] = field(default_factory=list)
    """(fault, from, to) in ms."""
    capacity: dict[str, float] | None = None
    """Units that were consumed; None if the service does not tell."""
    usage: dict[str, dict[str, int]] | None = None
    """Kind of use -> the metered count, and its bounds by the calls; None if it is not told."""
    drift_ms: int = 0
    jumped_ms: int = 0
    """The most by which this machine's clock was set while scenes were played."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Scene -> why the service did not let it be played."""
    errors: list[str] = field(default_factory=list)

    def histories(self) -> list[tuple[str, list[Call]]]:
        """(scene, its calls)"""
        found = [(each.name, each.remote.history.calls) for each in self.played]
        return found + [(each.name, each.remote.history.calls) for each in self.hooks]
