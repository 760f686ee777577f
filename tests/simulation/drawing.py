"""The scenario of a seed."""

from __future__ import annotations

import random

from tests.simulation.families import plain_scenario
from tests.simulation.own_families import OWN_FAMILIES
from tests.simulation.pairs import FIRST_SEEDS_OF_PAIRS, pair_scenario
from tests.simulation.scenario import FIRST_SEEDS
from tests.simulation.specials import in_objects, purged, turned_over

from cirrusmq_local.judging.scenario import Scenario

_OF_PURGED = ("plain", "rewinding", "receivers")
_TURNED_OVER, _PURGED, _IN_OBJECTS = 1 / 12, 1 / 16, 1 / 12
"""The shares of scenarios, of any family, in which the secret is turned over; of those, of the
families above, whose queue is purged again and again; and of those, of any of these, whose large
messages are in the bucket. They are drawn from numbers of their own: no other seed changes."""


def draw_scenario(seed: int) -> Scenario:
    """The scenario of a seed."""
    for name, first in reversed(FIRST_SEEDS_OF_PAIRS.items()):
        if seed >= first:
            return pair_scenario(name, random.Random(f"pair {seed}"))
    for family, first in reversed(FIRST_SEEDS.items()):
        if seed >= first:
            return OWN_FAMILIES[family](random.Random(f"{family.split()[0]} {seed}"))
    scenario = _special_scenario(seed)
    draw = random.Random(f"objects {seed}")
    if draw.random() < _IN_OBJECTS and not scenario.in_flight:
        return in_objects(draw, scenario)
    return scenario


def _special_scenario(seed: int) -> Scenario:
    scenario = plain_scenario(seed)
    draw = random.Random(f"turn-over {seed}")
    if draw.random() < _TURNED_OVER and not scenario.in_flight:
        return turned_over(draw, scenario)
    draw = random.Random(f"purges {seed}")
    if draw.random() < _PURGED and scenario.family in _OF_PURGED:
        return purged(scenario)
    return scenario
