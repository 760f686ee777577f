"""The times at which a waiting receive looks again: soon after a send, and within a cost.

The first look is at every partition. Then one partition is looked at after the other, in turn:

    seconds     0            0.085  0.17  0.255  0.34  0.425 ...
    partitions  0 1 2 3      0      1     2      3     0

A look at an idle partition costs half a read unit, and the attributes are read anew each second. A
poll of 20 s costs at most 150 units in all. A queue of up to 4 partitions looks at each of them
every 0.34 s for that, so that a message waits for 0.17 s in the median.

With more partitions their turns are further apart, and senders write wake-ups (`queues.wake_ups`),
which are looked at every 0.34 s for half a unit; the other looks go to the partitions in turn:

    seconds     0              0.122  0.244  0.34        0.366  0.488 ...
    partitions  0 1 2 ... 15   0      1      wake-ups: 9    2      3

Receivers of their own and subscriptions have no wake-ups; with up to 4 partitions a message waits
for 0.2 s there, since their attributes are read as well.
"""

from __future__ import annotations

from cirrusmq.model.source import Source
from cirrusmq.queues.wake_ups.rules import in_use, wakes

POLL_SECONDS = 20
POLL_UNITS = 150
ROUND_SECONDS = 0.34
"""Between two looks at one partition, at least; between two looks at the wake-ups."""
LONGEST_PAUSE_SECONDS = 5.0
WHOLE_END_PARTITIONS = 16
FIRST_PARTITIONS = 160
"""The first look of a long wait is at so many, where it has wake-ups; the turns begin behind."""
LONG_WAIT_SECONDS = 10.0
LEAST_WAIT_SECONDS = 1.0
"""A shorter wait does not look at wake-ups: senders ask once a second whether somebody waits."""
LOOK_UNITS = 8.0
"""Most read units of a look at the groups of an ordered or a fair source."""
PARTITION_UNITS = 0.5
"""Of them, the units of a look at one partition, at least, with any number of partitions."""
IDLE_UNITS = 0.5
"""Of a look at a partition without messages."""

_ROUNDED_UNITS = 1
"""By which a look's pages may be dearer than its parcels were taken for."""
_MOMENT_SECONDS = 0.000_5


def first_partitions(source: Source, wait_seconds: float) -> int:
    """How many partitions the first look is at."""
    if waits_for_wake_ups(source, wait_seconds) and wait_seconds >= LONG_WAIT_SECONDS:
        return min(source.partitions, FIRST_PARTITIONS)
    return source.partitions


def waits_for_wake_ups(source: Source, wait_seconds: float) -> bool:
    """Whether a wait of this length looks at wake-ups."""
    return wakes(source) and wait_seconds > LEAST_WAIT_SECONDS


def pause_seconds(source: Source, wait_seconds: float, units: float) -> float:
    """How long to wait before the next partition's turn, when the last look cost `units`.

    A look at groups may cost more than an idle one: a pause makes up for it, so that a poll costs
    no more than an idle one, however many groups are held.
    """
    looks = _looks(source, wait_seconds) - first_partitions(source, wait_seconds)
    idle = looks - (source.partitions if ends_with_all(source) else 0)
    left = looks - _last_look(source)
    few = not in_use(source.partitions)
    a_second = min(source.partitions / ROUND_SECONDS, (idle if few else left) / POLL_SECONDS)
    pause = min(1 / a_second, LONGEST_PAUSE_SECONDS) if a_second > 0 else LONGEST_PAUSE_SECONDS
    if units <= IDLE_UNITS:
        return pause
    return max(pause, units / IDLE_UNITS * POLL_SECONDS / max(1.0, left))


class Turns:
    """The times until the next looks of a wait: at the wake-ups, and at the next partition."""

    def __init__(self, wait_seconds: float, faster: float = 1.0) -> None:
        """faster: times as many looks as a poll of the service has; its units grow as they do."""
        self._wait_seconds, self._faster = wait_seconds, faster
        self._turn = self._round = 0.0

    def begin_turn(self, source: Source, units: float) -> None:
        """A partition was looked at, for so many units."""
        self._turn = pause_seconds(source, self._wait_seconds, units) / self._faster

    def begin_round(self) -> None:
        """The wake-ups were looked at."""
        self._round = ROUND_SECONDS / self._faster

    def next_seconds(self, source: Source) -> float:
        """Seconds until the next look of either kind."""
        return min(self._turn, self._round) if self.with_wake_ups(source) else self._turn

    def pass_seconds(self, seconds: float) -> None:
        """Let them pass."""
        self._turn -= seconds
        self._round -= seconds

    @property
    def turn_is_due(self) -> bool:
        """Whether to look at the next partition."""
        return self._turn < _MOMENT_SECONDS

    @property
    def round_is_due(self) -> bool:
        """Whether to look at the wake-ups, if there are any."""
        return self._round < _MOMENT_SECONDS

    def with_wake_ups(self, source: Source) -> bool:
        """Whether the wait looks at wake-ups at all."""
        return waits_for_wake_ups(source, self._wait_seconds)


def ends_with_all(source: Source) -> bool:
    """Whether the last look of a wait is at every partition, as the first one is."""
    return source.partitions <= WHOLE_END_PARTITIONS


def _last_look(source: Source) -> float:
    """What is kept for the last look, in idle looks; at groups, with the page that ends it."""
    partitions = source.partitions if ends_with_all(source) else 1
    if not source.grouped:
        return partitions if ends_with_all(source) else 0
    units = max(LOOK_UNITS, partitions * PARTITION_UNITS) + partitions * IDLE_UNITS
    return (units + _ROUNDED_UNITS) / IDLE_UNITS


def _looks(source: Source, wait_seconds: float) -> int:
    """Looks at one partition in `POLL_SECONDS`: two a unit, of the units that attributes leave."""
    documents = 2 if source.receiver or source.subscription else 1
    looks = 2 * (POLL_UNITS - documents * (POLL_SECONDS + 1) - 1)
    if waits_for_wake_ups(source, wait_seconds):
        looks -= int(POLL_SECONDS / ROUND_SECONDS) + 2
    return looks
