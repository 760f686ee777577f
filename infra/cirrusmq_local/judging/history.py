"""The history of a run, as its clients saw it: calls with their beginning, end and answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

MAX_SKEW_MS = 1_000
"""The largest skew of a clock from the true time, so that two differ by 2 s at most."""
SECRET = "GetSecretValue"
"""In place of a store's operation: the read of the secret that signs."""

Outcome = Literal["running", "answered", "refused", "failed", "crashed", "broken"]
"""`refused`: an error, and nothing was done; `failed`, `crashed`: the effect is not known."""


@dataclass(slots=True, eq=False)
class Call:
    """One call of one client. `begun` and `ended` number all moments of a run in their order."""

    actor: str
    kind: str
    place: str
    """The queue, or `queue/receiver`, or `topic/subscription`."""
    given: dict[str, Any]
    begun: int
    begun_ms: int
    ended: int = 1 << 60
    ended_ms: int = 1 << 60
    outcome: Outcome = "running"
    answer: Any = None
    environment: str = ""
    """The name of the environment that worked on it."""
    skew_ms: int = 0
    """How far the clock of the environment that worked on it was ahead of the true time."""
    unsure_ms: int = 0
    """How far its times may be off, at a service whose clock is known from its answers alone."""
    deleted: list[int | str] | None = None
    """The result of each delete that a receive carried, if they were answered."""
    after: str | None = None
    """The cursor in the answer of a receive by an attribute; the next one continues from it."""
    seen_all: bool = False
    """True if a receive by an attribute and the calls before it scanned everything."""
    faults: list[str] = field(default_factory=list)
    """Its faults: `<store operation>: <fault>`, or the fate of the call itself."""

    def overlaps(self, other: Call) -> bool:
        """True if both ran at the same moment."""
        return self.begun < other.ended and other.begun < self.ended

    @property
    def repeated(self) -> bool:
        """True if the SDK sent one of its store calls twice."""
        return any(fault.endswith(": twice") for fault in self.faults)

    @property
    def haunted(self) -> bool:
        """True if one of its store calls was delayed, and may take effect after its end."""
        return any(fault.endswith(": ghost") for fault in self.faults)

    @property
    def unanswered(self) -> bool:
        """True if the answer of one of its store calls was lost, which may have done its work."""
        return any(fault.endswith((": ghost", ": lost")) for fault in self.faults)

    @property
    def outdated(self) -> bool:
        """True if it may not have known the generation of the secret that signs."""
        return any(fault.startswith(SECRET) for fault in self.faults)

    @property
    def disturbed(self) -> bool:
        """True if it has any fault."""
        return bool(self.faults)

    @property
    def effective(self) -> bool:
        """True if it may have changed anything."""
        return self.outcome != "refused"

    @property
    def known(self) -> bool:
        """True if its answer shows its caller what it did."""
        return self.outcome == "answered"

    def line(self, start_ms: int = 0) -> str:
        """The call on one line, with its times since a start."""
        end = "" if self.ended == 1 << 60 else f"-{_clock(self.ended_ms - start_ms)}"
        shown = ", ".join(f"{name} {_short(value)}" for name, value in self.given.items())
        answer = self.outcome if self.answer is None else f"{self.outcome}: {_short(self.answer)}"
        when = f"{_clock(self.begun_ms - start_ms)}{end}"
        return f"{when:>24}  {self.actor:<12} {self.kind} {self.place} ({shown}) ──> {answer}"


@dataclass(slots=True)
class Violation:
    """A promise that a run broke, and the calls that show it."""

    promise: str
    calls: tuple[Call, ...] = ()

    def __str__(self) -> str:
        return self.promise


@dataclass(slots=True)
class History:
    """All calls of a run in the order of their beginning, and the faults of the run."""

    calls: list[Call] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)
    """(time in ms, the client and the fault of its call)."""
    moment: int = 0
    start_ms: int = 0
    """The time from which its lines count."""

    def begin(self, actor: str, kind: str, place: str, given: dict[str, Any], now_ms: int) -> Call:
        """Note that a call begins."""
        call = Call(actor, kind, place, given, self.tick(), now_ms)
        self.calls.append(call)
        return call

    def end(self, call: Call, outcome: Outcome, answer: Any, now_ms: int) -> None:
        """Note the outcome of a call. An unanswered one has no end."""
        call.outcome, call.answer = outcome, answer
        if outcome in ("answered", "refused"):
            call.ended, call.ended_ms = self.tick(), now_ms

    def tick(self) -> int:
        """The number of a new moment."""
        self.moment += 1
        return self.moment

    def lines(self) -> list[str]:
        """Calls and faults in the order of time."""
        told = [(call.begun_ms, call.begun, call.line(self.start_ms)) for call in self.calls]
        since = [(at_ms, _clock(at_ms - self.start_ms), what) for at_ms, what in self.faults]
        told += [(at_ms, 1 << 59, f"{shown:>24}  {what}") for at_ms, shown, what in since]
        return [line for _, _, line in sorted(told)]


def _clock(ms: int) -> str:
    return f"{ms / 1000:.3f}"


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_short, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_short(v)}" for k, v in value.items()) + "}"
    text = str(value)
    return text if len(text) <= 60 else text[:20] + "…" + text[-12:]
