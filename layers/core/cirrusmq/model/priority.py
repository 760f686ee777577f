"""Priorities: the level of a message, in its content and in the keys of its parcels.

    key of a parcel    000000000000000000000000#…   level 32: first
                       000000000000000000000001#…   level 31
                       00000000000000000000001f#…   level 1, which a message has that names none

The level takes the place that the hash of a group has in the keys of a fair source, so whatever
reads, moves and counts parcels group by group does so level by level.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from cirrusmq.base.limits import PRIORITIES
from cirrusmq.base.reserved_attributes import PRIORITY

LOWEST = 1
_HIGHEST = PRIORITIES[1]
_DIGITS = 24


class _Content(Protocol):
    @property
    def attributes(self) -> Mapping[str, str | bytes]: ...


M = TypeVar("M", bound=Any)


def with_priority(message: M, priority: int) -> M:
    """Returns the message with its priority noted; the lowest one is not."""
    if priority == LOWEST:
        return message
    marked: M = replace(message, attributes={**message.attributes, PRIORITY: str(priority)})
    return marked


def priority_of(message: _Content) -> int:
    """Returns the priority of a message; what no priority can be is the lowest one."""
    noted = message.attributes.get(PRIORITY)
    if not isinstance(noted, str) or not (noted.isascii() and noted.isdigit()):
        return LOWEST
    return min(max(int(noted), LOWEST), _HIGHEST)


def priority_in(key_prefix: str) -> int:
    """Returns the priority that the keys with a prefix have; the lowest one if they have none."""
    try:
        return max(LOWEST, _HIGHEST - int(key_prefix[:_DIGITS], 16))
    except ValueError:
        return LOWEST


def level_prefix(priority: int) -> str:
    """Returns what the keys of messages of a priority begin with."""
    return f"{_HIGHEST - priority:0{_DIGITS}x}#"


class Rank(msgspec.Struct, frozen=True):
    """A level and when its oldest message became active."""

    prefix: str
    oldest_ms: int

    def served_ms(self, ageing_ms: int) -> int:
        """Returns a time by which levels compare: the earlier one is served first."""
        return self.oldest_ms - priority_in(self.prefix) * ageing_ms

    def old_enough_ms(self, higher: Rank, ageing_ms: int) -> int:
        """Returns until when a message of the level must have been active to go before `higher`."""
        return higher.served_ms(ageing_ms) + priority_in(self.prefix) * ageing_ms
