"""Names that users choose, and the short random ids that stand for resources in keys."""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.limits import TOPIC_NAME

ID_CHARACTERS = 12
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)

QUEUE_NAME = (1, 64)
ACCOUNT_NAME = (1, 64)
RECEIVER_NAME = (1, 64)


class QueueRef(NamedTuple):
    """A queue or topic as a caller names it: `account` is its own unless the name says."""

    account: str
    name: str


def check_name(parameter: str, value: str, length: tuple[int, int] = QUEUE_NAME) -> str:
    """Answer `value` if it is a legal name of `length` characters, else raise InvalidParameter."""
    if not length[0] <= len(value) <= length[1] or not _NAME.fullmatch(value):
        raise InvalidParameter(
            parameter,
            f"must be {length[0]} to {length[1]} characters: a letter, "
            "then letters, digits, '-' and '_'",
        )
    return value


def parse_queue_ref(value: str, account: str, parameter: str = "queue") -> QueueRef:
    """Read `queue` or `account:queue` as the caller of `account` wrote it."""
    return _parse_ref(value, account, parameter, QUEUE_NAME)


def parse_topic_ref(value: str, account: str, parameter: str = "topic") -> QueueRef:
    """As `parse_queue_ref`, of a topic."""
    return _parse_ref(value, account, parameter, TOPIC_NAME)


def _parse_ref(value: str, account: str, parameter: str, bounds: tuple[int, int]) -> QueueRef:
    owner, colon, name = value.rpartition(":")
    if colon:
        check_name(parameter, owner, ACCOUNT_NAME)
    return QueueRef(owner if colon else account, check_name(parameter, name, bounds))


def new_id(randomness: random.Random) -> str:
    """A resource's id: 12 characters, 60 random bits, legal inside every key."""
    bits = randomness.getrandbits(5 * ID_CHARACTERS)
    return "".join(_ALPHABET[bits >> 5 * place & 31] for place in range(ID_CHARACTERS))
