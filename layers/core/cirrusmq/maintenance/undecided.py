"""Half messages that nobody decided in time: rolled back, and told."""

from __future__ import annotations

from cirrusmq.publishing.checks import Ended, end_halves
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import apart_from_others
from cirrusmq.storage.halves import read_producers


def end_all(core: Core, deadline_ms: int) -> Ended:
    """Roll back what is over, of all topics, until a deadline."""
    found = list(read_producers(core))
    core.random.shuffle(found)
    done, count = True, 0
    for producers in found:
        with apart_from_others(f"half messages of topic {producers.topic_id} could not be ended"):
            ended = end_halves(core, producers, deadline_ms)
            done, count = done and ended.done, count + ended.halves
    return Ended(done, count)
