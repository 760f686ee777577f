"""Names that users choose, and the short random ids that stand for resources in keys."""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from cirrusmq.base.errors import InvalidParameter

ID_CHARACTERS = 12
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


class NameRule(NamedTuple):
    """The names that a kind of resource may have."""

    least: int
    """The fewest characters."""
    most: int
    letter_first: bool = True
    """True if the first character must be a letter."""


QUEUE_NAME = NameRule(1, 80, letter_first=False)
TOPIC_NAME = NameRule(3, 256, letter_first=False)
SUBSCRIPTION_NAME = NameRule(3, 64)
ACCOUNT_NAME = NameRule(1, 64)
RECEIVER_NAME = NameRule(1, 64)
PRODUCERS_NAME = NameRule(1, 64)
"""A group of producers, whose half messages are checked together."""


class QueueRef(NamedTuple):
    """A queue or topic as a caller names it: `account` is its own unless the name says."""

    account: str
    name: str


def check_name(parameter: str, value: str, rule: NameRule) -> str:
    """Returns `value` if the rule allows it, else raises InvalidParameter."""
    is_begun = not rule.letter_first or value[:1].isalpha()
    if rule.least <= len(value) <= rule.most and is_begun and _NAME.fullmatch(value):
        return value
    first = "a letter, then " if rule.letter_first else ""
    raise InvalidParameter(
        parameter,
        f"must be {rule.least} to {rule.most} characters: {first}letters, digits, '-' and '_'",
    )


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
    return "".join(_ALPHABET[bits >> 5 * place & 31] for place in range(ID_CHARACTERS))
