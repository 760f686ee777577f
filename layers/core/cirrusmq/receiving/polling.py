"""The times at which a waiting receive polls again: soon after a send, and within a cost.

The first poll is of every partition. Then one partition is polled after the other, in turn:

    seconds     0            0.085  0.17  0.255  0.34  0.425 ...
    partitions  0 1 2 3      0      1     2      3     0

A poll of an idle partition costs half a read unit, and the attributes are read again each second. A
receive of 20 s costs at most 150 units in all. For that, a queue of up to 4 partitions polls each
of them every 0.34 s, so that a message waits for 0.17 s in the median.

With more partitions their turns are further apart, and senders write wake-ups (`queues.wake_ups`),
which are read every 0.34 s for half a unit; the other polls go to the partitions in turn:

    seconds     0              0.122  0.244  0.34        0.366  0.488 ...
    partitions  0 1 2 ... 15   0      1      wake-ups: 9    2      3

Receivers as sources, and subscriptions, have no wake-ups; with up to 4 partitions a message waits
for 0.2 s there, since their attributes are read as well.
"""

from __future__ import annotations

from cirrusmq.model.source import Source
from cirrusmq.queues.wake_ups.rules import in_use, wakes

POLL_SECONDS = 20
POLL_UNITS = 150
ROUND_SECONDS = 0.34
"""Least time between two polls of one partition, and between two reads of the wake-ups."""
LONGEST_PAUSE_SECONDS = 5.0
WHOLE_END_PARTITIONS = 16
FIRST_PARTITIONS = 160
"""Partitions of the first poll of a long wait that has wake-ups; the turns begin behind them."""
LONG_WAIT_SECONDS = 10.0
MIN_WAIT_SECONDS = 1.0
"""A shorter wait reads no wake-ups: senders check once a second if somebody waits."""
LOOK_UNITS = 8.0
"""Most read units of a poll of the groups of an ordered or a fair source."""
PARTITION_UNITS = 0.5
"""Units of these for one partition, at least, with any number of partitions."""
IDLE_UNITS = 0.5
"""Read units of a poll of a partition without messages."""

_ROUNDED_UNITS = 1
"""Units by which a poll's pages may exceed the estimate from its parcels."""
_MOMENT_SECONDS = 0.000_5


def first_partitions(source: Source, wait_seconds: float) -> int:
    """Returns the number of partitions of the first poll."""
    if wait_seconds >= LONG_WAIT_SECONDS and wakes(source):
        return min(source.partitions, FIRST_PARTITIONS)
    return source.partitions


def waits_for_wake_ups(source: Source, wait_seconds: float) -> bool:
    """Returns True if a wait of this length reads wake-ups."""
    return wait_seconds > MIN_WAIT_SECONDS and wakes(source)


def pause_seconds(source: Source, wait_seconds: float, units: float) -> float:
    """Returns the pause before the next partition's turn, if the last poll cost `units`.

    A poll of groups may cost more than an idle one: a longer pause makes up for it, so that the
    receive stays within its cost, however many groups are held.
    """
    looks = _looks(source, wait_seconds) - first_partitions(source, wait_seconds)
    idle = looks - source.partitions  # the last poll is of all, if they are few
    left = looks - _last_look(source)
    few = not in_use(source.partitions)
    a_second = min(source.partitions / ROUND_SECONDS, (idle if few else left) / POLL_SECONDS)
    pause = min(1 / a_second, LONGEST_PAUSE_SECONDS) if a_second > 0 else LONGEST_PAUSE_SECONDS
    if units <= IDLE_UNITS:
        return pause
    return max(pause, units / IDLE_UNITS * POLL_SECONDS / max(1.0, left))


class Turns:
    """The times until the next polls of a wait: of the wake-ups, and of the next partition."""

    def __init__(self, wait_seconds: float, faster: float = 1.0) -> None:
        """faster: times as many looks as a poll of the service has; its units grow as they do."""
        self._wait_seconds, self._faster = wait_seconds, faster
        self._turn = self._round = 0.0

    def begin_turn(self, source: Source, units: float) -> None:
        """Begins the pause after a poll of a partition that cost `units`."""
        self._turn = pause_seconds(source, self._wait_seconds, units) / self._faster

    def begin_round(self) -> None:
        """Begins the pause after a read of the wake-ups."""
        self._round = ROUND_SECONDS / self._faster

    def next_seconds(self, source: Source) -> float:
        """Returns the seconds until the next poll of either kind."""
        wakes = waits_for_wake_ups(source, self._wait_seconds)
        return min(self._turn, self._round) if wakes else self._turn

    def pass_seconds(self, seconds: float) -> None:
        """Lets these seconds pass for both."""
        self._turn -= seconds
        self._round -= seconds

    @property
    def turn_is_due(self) -> bool:
        """True if the next partition is to be polled."""
        return self._turn < _MOMENT_SECONDS

    @property
    def round_is_due(self) -> bool:
        """True if the wake-ups are to be read, if there are any."""
        return self._round < _MOMENT_SECONDS


def ends_with_all(source: Source) -> bool:
    """Returns True if the last poll of a wait is of every partition, as the first one is."""
    return source.partitions <= WHOLE_END_PARTITIONS


def _last_look(source: Source) -> float:
    """Returns the cost reserved for the last poll, in idle polls; groups need one more page."""
    partitions = source.partitions if ends_with_all(source) else 1
    if not source.grouped:
        return partitions if ends_with_all(source) else 0
    units = max(LOOK_UNITS, partitions * PARTITION_UNITS) + partitions * IDLE_UNITS
    return (units + _ROUNDED_UNITS) / IDLE_UNITS


def _looks(source: Source, wait_seconds: float) -> int:
    """Returns the polls of one partition in `POLL_SECONDS`: two for each unit beside attributes."""
    documents = 2 if source.receiver or source.subscription else 1
    looks = 2 * (POLL_UNITS - documents * (POLL_SECONDS + 1) - 1)
    if waits_for_wake_ups(source, wait_seconds):
        looks -= int(POLL_SECONDS / ROUND_SECONDS) + 2
    return looks
