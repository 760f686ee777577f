"""Faults planted into fair queues: into the ring of their groups, and into the groups' keys."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.plants import plant
from tests.simulation.scenario import FAIR

from cirrusmq.lifecycle import rekey
from cirrusmq.model import transitions
from cirrusmq.model.parcel import key_in_group
from cirrusmq.receiving import fair, group_slices
from cirrusmq.receiving.turn_memory import TurnMemory
from cirrusmq.sending import making
from cirrusmq.storage.queries import FIRST_KEY, LAST_KEY


@plant(FAIR, found_by=6_000_017)
def the_ring_does_not_go_on(patch: pytest.MonkeyPatch) -> None:
    """Each look begins at the first group, whichever was served last."""
    patch.setattr(TurnMemory, "turn", lambda *_: FIRST_KEY)


@plant(FAIR, found_by=6_000_003)
def the_ring_ends_at_its_last_group(patch: pytest.MonkeyPatch) -> None:
    """The groups in front of the last turn are not looked at."""
    patch.setattr(fair, "FIRST_KEY", LAST_KEY)
    patch.setattr(TurnMemory, "at_once", lambda *_: 0)


@plant(FAIR, found_by=6_000_020)
def a_send_that_is_repeated_is_of_another_group(patch: pytest.MonkeyPatch) -> None:
    """Its key is free, so that it is stored twice."""
    calls: list[str | None] = []

    def prefix(queue: Any, group: str | None) -> str:
        if not queue.attributes.fair:
            return ""
        calls.append(group)
        return making.group_prefix(f"{group}{calls.count(group) % 2}")

    patch.setattr(making, "queue_prefix", prefix)


@plant(FAIR, found_by=6_000_000)
def what_moves_leaves_its_group(patch: pytest.MonkeyPatch) -> None:
    """What is given back is found under no group's keys."""
    under_key = transitions.under_key

    def alone(*args: Any) -> Any:
        moved = under_key(*args)
        return replace(moved, sort_key=f"{'~' * 24}#{key_in_group(moved.sort_key)}")

    patch.setattr(rekey, "under_key", alone)


@plant(FAIR, found_by=6_000_034)
def a_page_is_all_that_a_group_has(patch: pytest.MonkeyPatch) -> None:
    """What is behind the first parcels of a group, while those are held, is not looked for."""
    for module in (fair, group_slices):
        patch.setattr(module, "pages_with_something", lambda *_, **__: iter(()))
    patch.setattr(fair, "_FEW", 1)  # few groups here have more in flight than a page
    patch.setattr(fair, "FEWEST_PER_PAGE", 1)


@plant(FAIR, found_by=6_000_001)
def what_is_in_flight_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    """A group gets more than its limit."""
    patch.setattr(fair._RoundRobin, "_room", lambda *_: 16)
