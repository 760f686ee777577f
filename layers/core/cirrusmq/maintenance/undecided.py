"""Half messages that nobody decided in time: rolled back, and told."""

from __future__ import annotations

from typing import NamedTuple

from cirrusmq.publishing.checks import end_halves
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import apart_from_others
from cirrusmq.storage.halves import read_producers


class Ended(NamedTuple):
    """A look at all producers' half messages."""

    done: bool
    halves: int
    """How many were rolled back since nobody decided."""


def end_all(core: Core, deadline_ms: int) -> Ended:
    """Roll back what is over, of all topics, until a deadline."""
    found = list(read_producers(core))
    core.random.shuffle(found)
    count = 0
    for producers in found:
        if core.now_ms() >= deadline_ms:
            return Ended(False, count)
        with apart_from_others(f"half messages of topic {producers.topic_id} could not be ended"):
            count += end_halves(core, producers)
    return Ended(True, count)
