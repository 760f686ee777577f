"""What a pointer to bills says of the runs before: tables, coverage, closed months, the card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cirrusmq_reports.coverage import Stretch
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.times import DAY_MS, iso_time

_TAKEN_MOST, _TAKEN_DAYS = 60, 40
FORMAT = 3
"""Of a pointer. 2: bills by record. 3: parts of days may be folded into one of their month.

Releases before 2 have none. A release refuses a pointer of a later one: after a rollback it would
not find the records that are in parts which it does not know, and bill them again.
"""
_BY_RECORD = 2


def is_by_record(state: Mapping[str, Any]) -> bool:
    """Whether a pointer's state is of bills by record."""
    return format_of(state) >= _BY_RECORD


def format_of(state: Mapping[str, Any]) -> int:
    """The format of a pointer's state; 0 = of a release before there were formats."""
    return int(state.get("format", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedTable:
    """A table whose exports are billed."""

    id: str
    arn: str
    from_ms: int = 0
    """From then on it was in use, as far as the exports can tell."""
    until_ms: int | None = None
    """When the next one took over."""
    removed_ms: int = 0
    """A person accepted that records which were shown until then may be missing."""

    def named(self, name: str) -> bool:
        """Whether a person's name for a table means this one."""
        return name in (self.id, self.arn, self.arn.rpartition("/")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state that the current bills were made from."""

    sequence: int = 0
    """The number of the run; 0 before the first."""
    to_ms: int = 0
    """The end of the newest export."""
    tables: Sequence[FollowedTable] = ()
    coverage: Sequence[Stretch] = ()
    accepted: Sequence[Stretch] = ()
    """Gaps that a person accepted."""
    closed: Mapping[str, int] = field(default_factory=dict)
    """Month with issued invoices → the last run whose rows of it are on documents."""
    card: Sequence[Sequence[Any]] = ()
    """The first day and digest of each entry of the card that a closed month had."""
    prices: str = ""
    """The digest of the whole card that the open months were charged by."""
    adjusted: int = 0
    """The last run whose adjustments are on documents."""
    documents_run: str = ""
    """The newest run that issued documents."""
    taken: Mapping[str, int] = field(default_factory=dict)
    """Content of an export whose records are in the ledger → its time; of the last weeks."""
    ledger_from: str = ""
    """The first month of writing that the ledger keeps; "" = all."""

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> State:
        """The state that `as_dict` made."""
        return cls(
            sequence=int(state["sequence"]),
            to_ms=int(state["to_ms"]),
            tables=[FollowedTable(**table) for table in state["tables"]],
            coverage=[Stretch(*pair) for pair in state["coverage"]],
            accepted=[Stretch(*pair) for pair in state["accepted"]],
            closed={str(month): int(number) for month, number in state["closed"].items()},
            card=[tuple(entry) for entry in state["card"]],
            prices=str(state["prices"]),
            adjusted=int(state["adjusted"]),
            documents_run=str(state["documents_run"]),
            taken={str(name): int(at_ms) for name, at_ms in state.get("taken", {}).items()},
            ledger_from=str(state.get("ledger_from", "")),
        )

    def as_dict(self) -> dict[str, Any]:
        """The state as JSON has it."""
        return {
            "format": FORMAT,
            "sequence": self.sequence,
            "to_ms": self.to_ms,
            "to": iso_time(self.to_ms),
            "tables": [asdict(table) for table in self.tables],
            "coverage": [list(stretch) for stretch in self.coverage],
            "accepted": [list(stretch) for stretch in self.accepted],
            "closed": dict(sorted(self.closed.items())),
            "card": [list(entry) for entry in self.card],
            "prices": self.prices,
            "adjusted": self.adjusted,
            "documents_run": self.documents_run,
            "taken": dict(sorted(self.taken.items())),
            "ledger_from": self.ledger_from,
        }

    def unread(self, exports: Sequence[Export]) -> list[Export]:
        """The exports that show what no run has read.

        A night names a week's whole export and all windows since, so that a night that failed is
        made good. Of known ones the last is read again: what is set aside is tried each time.
        """
        return [each for each in exports if each.content not in self.taken] or [*exports[-1:]]

    def taken_with(self, exports: Sequence[Export], to_ms: int) -> dict[str, int]:
        """What is taken once these exports are; older ones are read again if they are given."""
        taken = {**self.taken, **{each.content: each.at_ms for each in exports}}
        newest = sorted(taken.items(), key=lambda pair: (pair[1], pair[0]))[-_TAKEN_MOST:]
        return {name: at_ms for name, at_ms in newest if at_ms > to_ms - _TAKEN_DAYS * DAY_MS}

    @property
    def closed_through(self) -> str:
        """The last closed month; "" = none."""
        return max(self.closed, default="")
