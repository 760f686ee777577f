"""The times at which a waiting receive looks again: soon after a send, and within a cost.

The first look is at every partition. Then one partition is looked at after the other, in turn:

    seconds     0            0.085  0.17  0.255  0.34  0.425 ...
    partitions  0 1 2 3      0      1     2      3     0

A look at an idle partition costs half a read unit, and the attributes are read anew each second. A
poll of 20 s costs at most 150 units in all. A queue of up to 4 partitions looks at each of them
every 0.34 s for that, so that a message waits for 0.17 s in the median (0.2 s, if a receiver or
a subscription has attributes of its own); with more partitions their turns are further apart.
"""

from __future__ import annotations

from cirrusmq.model.source import Source

POLL_SECONDS = 20
POLL_UNITS = 150
ROUND_SECONDS = 0.34
"""Between two looks at one partition, at least."""
LONGEST_PAUSE_SECONDS = 5.0
WHOLE_END_PARTITIONS = 16
UNITS_PER_SECOND = 20
"""A look that cost more than an idle one is followed by a pause that makes up for it."""


def pause_seconds(source: Source, units: float) -> float:
    """How long to wait before the next partition's turn, when the last look cost `units`."""
    whole_looks = 2 if ends_with_all(source) else 1
    left = _looks(source) - whole_looks * source.partitions
    a_second = min(source.partitions / ROUND_SECONDS, left / POLL_SECONDS)
    pause = 1 / a_second if a_second > 0 else LONGEST_PAUSE_SECONDS
    return max(min(pause, LONGEST_PAUSE_SECONDS), units / UNITS_PER_SECOND)


def ends_with_all(source: Source) -> bool:
    """Whether the last look of a wait is at every partition, as the first one is."""
    return source.partitions <= WHOLE_END_PARTITIONS


def _looks(source: Source) -> int:
    """Looks at one partition in `POLL_SECONDS`: two a unit, of the units that attributes leave."""
    documents = 2 if source.receiver or source.subscription else 1
    return 2 * (POLL_UNITS - documents * (POLL_SECONDS + 1) - 1)
