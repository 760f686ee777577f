"""Names that users choose, and the short random ids that stand for resources in keys."""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from cirrusmq.base.errors import InvalidParameter

ID_CHARACTERS = 12
FIFO = ".fifo"
FIFO_OF_BEFORE = "_fifo"
"""The end of names of FIFO queues that SQS's calls made; others may have it, too."""
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


class NameRule(NamedTuple):
    """The names that a kind of resource may have."""

    least: int
    """The fewest characters."""
    limit: int
    letter_first: bool = True
    """True if the first character must be a letter."""
    fifo: bool = False
    """True if it may end in `.fifo`, as names of FIFO queues and topics in AWS do."""


QUEUE_NAME = NameRule(1, 80, letter_first=False, fifo=True)
TOPIC_NAME = NameRule(1, 256, letter_first=False, fifo=True)
SUBSCRIPTION_NAME = NameRule(3, 64)
ACCOUNT_NAME = NameRule(1, 64)
RECEIVER_NAME = NameRule(1, 64)
SCHEDULE_NAME = NameRule(1, 80, letter_first=False)
PRODUCERS_NAME = NameRule(1, 64)
"""A group of producers, whose half messages are checked together."""


class QueueRef(NamedTuple):
    """A queue or topic as a caller names it: `account` is its own unless the name says."""

    account: str
    name: str


def check_name(parameter: str, value: str, rule: NameRule) -> str:
    """Returns `value` if the rule allows it, else raises InvalidParameter."""
    is_begun = not rule.letter_first or value[:1].isalpha()
    plain = value.removesuffix(FIFO) if rule.fifo else value
    if rule.least <= len(value) <= rule.limit and is_begun and _NAME.fullmatch(plain):
        return value
    first = "a letter, then " if rule.letter_first else ""
    last = f", at the end {FIFO}" if rule.fifo else ""
    raise InvalidParameter(
        parameter,
        f"must be {rule.least} to {rule.limit} characters: {first}letters, digits, '-' and '_'"
        f"{last}",
    )


def other_fifo_name(name: str) -> str | None:
    """The other name that an ordered queue may not have beside this one; None if any may be.

    SQS's callers know an ordered `orders_fifo` as `orders.fifo`: there is one of the two.
    """
    for own, other in ((FIFO, FIFO_OF_BEFORE), (FIFO_OF_BEFORE, FIFO)):
        if name.endswith(own) and name != own:
            return name.removesuffix(own) + other
    return None


def parse_queue_ref(value: str, account: str, parameter: str = "queue") -> QueueRef:
    """Reads `queue` or `account:queue` as the caller of `account` wrote it."""
    return _parse_ref(value, account, parameter, QUEUE_NAME)


def parse_topic_ref(value: str, account: str, parameter: str = "topic") -> QueueRef:
    """Does what `parse_queue_ref` does, for a topic."""
    return _parse_ref(value, account, parameter, TOPIC_NAME)


def _parse_ref(value: str, account: str, parameter: str, rule: NameRule) -> QueueRef:
    owner, colon, name = value.rpartition(":")
    if colon:
        check_name(parameter, owner, ACCOUNT_NAME)
    return QueueRef(owner if colon else account, check_name(parameter, name, rule))


def new_id(randomness: random.Random) -> str:
    """Returns a resource's id: 12 characters, 60 random bits, legal inside every key."""
    bits = randomness.getrandbits(5 * ID_CHARACTERS)
    return "".join(_ALPHABET[bits >> 5 * index & 31] for index in range(ID_CHARACTERS))
