"""The rate of each group of a fair source: takes before its claims, and groups that are full.

    group    acme ── takes 2 of 5 ── claims 2 ── takes 3 ── claims 3 ── full, to the second's end
    a look   passes acme: without a page of it, if it has more than one ── takes from other groups

A claim that gets less, since others were faster or the answer is full, gives the rest back to its
environment for the same second.
"""

from __future__ import annotations

import msgspec

from cirrusmq.access import source_rates
from cirrusmq.access.source_rates import RateMemory
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core


class GroupRate(msgspec.Struct, frozen=True):
    """The rate of one group, by the prefix of its keys."""

    core: Core
    source: Source
    prefix: str
    rate: int

    @property
    def _name(self) -> str:
        return f"{self.source.id}#{self.prefix[:-1]}"

    def allow(self, limit: int) -> int:
        """Takes for up to `limit` messages. Returns for how many there was room."""
        return source_rates.allow_receives(self.core, self._name, self.rate, limit) if limit else 0

    def give_back(self, count: int, second: int) -> None:
        """Returns a part of a take that began in `second`, for messages that were not claimed."""
        if count:
            source_rates.give_back(self.core, self._name, count, second)

    def is_full(self) -> bool:
        """Returns True if this environment knows that nothing is left of the present second."""
        memory, second = self.core.memory(RateMemory), source_rates.second_of(self.core)
        with memory.lock:
            return memory.is_full((self._name, "receive"), second)

    def pass_by(self) -> None:
        """Makes scans pass the group without reading it, for as long as it is full."""
        memory, second = self.core.memory(RateMemory), source_rates.second_of(self.core)
        with memory.lock:
            memory.of((self._name, "receive"), second).long = True


def passed_groups(core: Core, source: Source) -> list[str]:
    """Returns the prefixes of groups to pass without reading, in the order of their keys."""
    memory, second = core.memory(RateMemory), source_rates.second_of(core)
    with memory.lock:
        return [f"{each}#" for each in memory.long_groups(source.id, second)]
