"""The state of earlier runs in the pointer: tables, coverage, closed months, the rate card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cirrusmq_reports.coverage import ScannedRange
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.times import DAY_MS, iso_time

_TAKEN_MOST, _TAKEN_DAYS = 60, 40
FORMAT = 3
"""Format of a pointer. 2: bills by record. 3: parts of days may be folded into one of a month.

Releases before 2 have none. A release refuses a pointer of a later one: after a rollback it would
not find the records in parts that it does not know, and bill them again.
"""
_BY_RECORD = 2


def is_by_record(state: Mapping[str, Any]) -> bool:
    """Returns True if a pointer's state is of bills by record."""
    return format_of(state) >= _BY_RECORD


def format_of(state: Mapping[str, Any]) -> int:
    """Returns the format of a pointer's state, or 0 for a release without formats."""
    return int(state.get("format", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedTable:
    """A table whose exports are billed."""

    id: str
    arn: str
    from_ms: int = 0
    """Start of its use, as far as the exports show."""
    until_ms: int | None = None
    """Time at which the next table took over, or None."""
    removed_ms: int = 0
    """Until this time a person has accepted that records which were shown are missing."""

    def named(self, name: str) -> bool:
        """Returns True if a name from the command line means this table."""
        return name in (self.id, self.arn, self.arn.rpartition("/")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state from which the current bills were made."""

    sequence: int = 0
    """Number of the run, or 0 before the first one."""
    to_ms: int = 0
    """The end of the newest export."""
    tables: Sequence[FollowedTable] = ()
    coverage: Sequence[ScannedRange] = ()
    accepted: Sequence[ScannedRange] = ()
    """Gaps that a person accepted."""
    closed: Mapping[str, int] = field(default_factory=dict)
    """Month with issued invoices → the last run whose rows are on its documents."""
    card: Sequence[Sequence[Any]] = ()
    """First day and digest of each entry of the card that applied to a closed month."""
    prices: str = ""
    """Digest of the card by which the open months were charged."""
    adjusted: int = 0
    """The last run whose adjustments are on documents."""
    documents_run: str = ""
    """The newest run that issued documents."""
    taken: Mapping[str, int] = field(default_factory=dict)
    """Content digest of a taken export → its time, for the last weeks."""
    ledger_from: str = ""
    """The first month of writing that the ledger keeps; "" means all."""

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> State:
        """Returns the state that `as_dict` made."""
        return cls(
            sequence=int(state["sequence"]),
            to_ms=int(state["to_ms"]),
            tables=[FollowedTable(**table) for table in state["tables"]],
            coverage=[ScannedRange(*pair) for pair in state["coverage"]],
            accepted=[ScannedRange(*pair) for pair in state["accepted"]],
            closed={str(month): int(number) for month, number in state["closed"].items()},
            card=[tuple(entry) for entry in state["card"]],
            prices=str(state["prices"]),
            adjusted=int(state["adjusted"]),
            documents_run=str(state["documents_run"]),
            taken={str(name): int(at_ms) for name, at_ms in state.get("taken", {}).items()},
            ledger_from=str(state.get("ledger_from", "")),
        )

    def as_dict(self) -> dict[str, Any]:
        """Returns the state as JSON values."""
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
        """Returns the exports that no run has read, and the last of the known ones.

        A nightly run gets a week's full export and all windows since, to make up for failed nights.
        The last known export is read again, so that quarantined entries are retried.
        """
        return [each for each in exports if each.content not in self.taken] or [*exports[-1:]]

    def taken_with(self, exports: Sequence[Export], to_ms: int) -> dict[str, int]:
        """Returns `taken` with these exports, without old ones, which would be read again."""
        taken = {**self.taken, **{each.content: each.at_ms for each in exports}}
        newest = sorted(taken.items(), key=lambda pair: (pair[1], pair[0]))[-_TAKEN_MOST:]
        return {name: at_ms for name, at_ms in newest if at_ms > to_ms - _TAKEN_DAYS * DAY_MS}

    @property
    def closed_through(self) -> str:
        """The last closed month, or "" if there is none."""
        return max(self.closed, default="")
