"""A half message: a publish that nobody sees before its producer commits it. Pure values.

    PREPARED ──(commit)──> COMMITTED        the log record is put in the same transaction
        │
        └──(rollback, or nobody decided in time)──> ROLLED BACK

Each arrow is one conditional write over PREPARED, so that exactly one of the two is ever taken.
A publish has one half message for all of its messages; the handle is its id.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from cirrusmq.model.envelope import Described
from cirrusmq.model.topic import Topic
from cirrusmq.publishing.records import Published

State: TypeAlias = Literal["prepared", "committed", "rolled_back"]
_HANDLE = re.compile(r"Half-([0-7][0-9A-HJKMNP-TV-Z]{25})", re.ASCII)


class Terms(msgspec.Struct, frozen=True, array_like=True):
    """Parameters of a prepare beside the messages; the lists have an entry for each message."""

    account: str
    """The producer's account; no other account may ask for it or decide it."""
    group: str
    """The producers of the account that are asked for the decision."""
    check_after_seconds: int
    max_checks: int
    routing_keys: list[str]
    deduplication_ids: list[str | None]

    @property
    def producers(self) -> str:
        """The group, as no other account has it."""
        return producers_of(self.account, self.group)


class Half(msgspec.Struct, frozen=True, kw_only=True):
    """A half message as the store has it. Times are in milliseconds since the epoch."""

    topic_id: str
    partition: int
    id: str
    state: State
    prepared_ms: int
    until_ms: int
    """From then on it can only be rolled back."""
    due_ms: int
    """The time of its mark: when it is to be checked, or is over."""
    checks: int
    """The number of checks that were handed out."""
    terms: Terms
    messages: Mapping[int, Described]
    """Without their bodies if these are in an object; none once it is decided."""
    packed: bytes | None = None
    """All messages, if they are in no object."""
    object_days: int = 0
    announced: Sequence[Published] = ()
    """The published messages, once it is committed."""
    timed_out: bool = False
    """True if it was rolled back because nobody decided in time."""

    @property
    def handle(self) -> str:
        """The text by which its producers name it."""
        return f"Half-{self.id}"

    @property
    def is_last(self) -> bool:
        """True if it is not handed out again: its mark has the time when it is over."""
        return self.due_ms >= self.until_ms


def producers_of(account: str, group: str) -> str:
    """A group of an account's producers: in keys, and in the log."""
    return f"{account}:{group}"


def id_of(handle: str) -> str | None:
    """Returns the id in a handle, or None if it is no handle."""
    match = _HANDLE.fullmatch(handle)
    return match[1] if match else None


def half_partition(topic: Topic, half_id: str) -> int:
    """The partition of a half message; a topic's number of partitions never changes."""
    return zlib.crc32(half_id.encode()) % topic.attributes.partitions


def checked(half: Half, now_ms: int, visibility_seconds: int) -> Half:
    """Returns the half message as handed out now: held for `visibility_seconds`, then left to wait.

        check 1 ── held ──│── wait ──> check 2 ── held ──│── wait ──> over

    Behind the last check its time is over, and at the end of its life in any case.
    """
    wait_ms = (visibility_seconds + half.terms.check_after_seconds) * 1000
    due_ms = min(now_ms + wait_ms, half.until_ms)
    last = half.checks + 1 >= half.terms.max_checks
    return msgspec.structs.replace(
        half,
        checks=half.checks + 1,
        due_ms=due_ms,
        until_ms=due_ms if last else half.until_ms,
    )


def first_due_ms(now_ms: int, terms: Terms) -> int:
    """When a half message that is prepared now is to be checked first."""
    return now_ms + terms.check_after_seconds * 1000
