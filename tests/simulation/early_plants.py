"""Faults planted into receivers that begin with the earliest message."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.simulation.plants import plant
from tests.simulation.scenario import EARLY

from cirrusmq.lifecycle import moves
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.model.transitions import moved
from cirrusmq.operations import backfill
from cirrusmq.queues import frontiers, reader_backlog


@plant(EARLY, found_by=7_000_047)
def what_a_backfill_has_not_reached_is_received(patch: pytest.MonkeyPatch) -> None:
    """Receivers do not look how far the operation is."""
    patch.setattr(frontiers, "frontier", lambda *_, **__: None)


@plant(EARLY, found_by=7_000_046)
def what_ends_during_a_backfill_is_not_kept(patch: pytest.MonkeyPatch) -> None:
    """Consumers delete and move messages of the backlog as any others."""
    patch.setattr(Source, "gives_away", lambda *_: False)


@plant(EARLY, found_by=7_000_023)
def a_backfill_does_not_read_the_archive(patch: pytest.MonkeyPatch) -> None:
    """What consumers have deleted since is not given."""
    patch.setattr(backfill, "ARCHIVE", "none")


@plant(EARLY, found_by=7_000_005)
def what_was_moved_since_is_copied_as_well(patch: pytest.MonkeyPatch) -> None:
    """A message that was given back meanwhile is copied from where it was, and where it is."""
    alive_at = reader_backlog.alive_at

    def careless(parcel: Parcel, moment_ms: int, now_ms: int) -> list[int]:
        return alive_at(replace(parcel, moved_ms=0), moment_ms, now_ms)

    patch.setattr(backfill, "alive_at", careless)


@plant(EARLY, found_by=7_000_039)
def what_is_moved_does_not_say_when(patch: pytest.MonkeyPatch) -> None:
    """A message that is given back meanwhile is copied neither from there nor from here."""
    patch.setattr(moves, "moved", lambda mark, noted_ms=None: moved(mark))


@plant(EARLY, found_by=7_000_007)
def a_backfill_ends_with_the_backlog(patch: pytest.MonkeyPatch) -> None:
    """What was sent since the log was turned on, and before all knew of the receiver, is missed."""
    patch.setattr(backfill, "log_between", lambda *_: iter(()))
