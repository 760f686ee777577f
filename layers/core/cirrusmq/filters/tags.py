"""Tags: the limits of a message's and a subscription's tags, and when the two meet.

Tags match exactly and with case. A subscription names them in a list or as an expression: `*` for
every message, or `TagA||TagB`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cirrusmq.base.errors import InvalidFilter, InvalidParameter
from cirrusmq.filters.filterable import Filterable

TAGS_PER_MESSAGE = 10
TAGS_PER_FILTER = 10
TAG_CHARACTERS = 16
LONG_TAG_CHARACTERS = 64
"""Maximum characters of a tag that an SDK of another service gives."""

EVERY_TAG = "*"
TAG_SEPARATOR = "||"


class TagFilter(msgspec.Struct, frozen=True):
    """Lets a message pass that shares at least one of `tags`; one without tags never passes.

    `shown` is the filter as it was given, as pairs of member and value.
    """

    tags: frozenset[str]
    shown: tuple[str, str | tuple[str, ...]]

    def matches(self, message: Filterable) -> bool:
        return not self.tags.isdisjoint(message.tags)

    def normalized(self) -> dict[str, object]:
        member, value = self.shown
        return {member: value if isinstance(value, str) else list(value)}


def check_tags(tags: object, parameter: str, characters: int = TAG_CHARACTERS) -> tuple[str, ...]:
    """The tags of a message, checked: at most 10, each of 1 to `characters`.

    Raises `InvalidParameter` on `parameter`, or on the place in it of the tag that is at fault.
    """
    if not isinstance(tags, list | tuple):
        raise InvalidParameter(parameter, "must be a list of strings")
    if len(tags) > TAGS_PER_MESSAGE:
        raise InvalidParameter(
            parameter, f"must have at most {TAGS_PER_MESSAGE} tags, not {len(tags)}"
        )
    for index, tag in enumerate(tags):
        fault = _fault(tag, characters)
        if fault is not None:
            raise InvalidParameter(f"{parameter}[{index}]", fault)
    return tuple(tags)


def tags_of_list(tags: object, characters: int) -> tuple[str, ...]:
    """The tags of a filter's `tags`; none of them means that there is no filter.

    `characters`: the most of a tag. Raises `InvalidFilter`.
    """
    if not isinstance(tags, list | tuple):
        raise InvalidFilter("tags: must be a list of strings")
    return _checked(tags, "tags", characters)


def tags_of_expression(expression: object, characters: int) -> tuple[str, ...]:
    """The tags of a filter's `tag_expression`; none of them (`*`) means that there is no filter.

    Blanks around a tag belong to the notation, not to the tag. `characters`: the most of a tag.
    Raises `InvalidFilter`.
    """
    if not isinstance(expression, str):
        raise InvalidFilter("tag_expression: must be a string")
    parts = [part.strip() for part in expression.split(TAG_SEPARATOR)]
    if parts == [EVERY_TAG]:
        return ()
    if EVERY_TAG in parts:
        raise InvalidFilter(f"tag_expression: {EVERY_TAG} must be the only tag")
    return _checked(parts, "tag_expression", characters)


def _checked(tags: Sequence[object], member: str, characters: int) -> tuple[str, ...]:
    if len(tags) > TAGS_PER_FILTER:
        raise InvalidFilter(f"{member}: must have at most {TAGS_PER_FILTER} tags, not {len(tags)}")
    accepted = []
    for position, tag in enumerate(tags, start=1):
        fault = _fault(tag, characters)
        if fault is not None:
            raise InvalidFilter(f"{member}: tag {position}: {fault}")
        accepted.append(str(tag))
    return tuple(accepted)


def _fault(tag: object, characters: int) -> str | None:
    """Returns the rule that `tag` breaks, or None if it breaks none."""
    if not isinstance(tag, str):
        return "must be a string"
    if not 1 <= len(tag) <= characters:
        return f"must have 1 to {characters} characters, not {len(tag)}"
    # Tags travel in a header of HTTP deliveries, where a line break would begin another one.
    if any(character < " " or character == "\x7f" for character in tag):
        return "must not have control characters"
    if any("\ud800" <= character <= "\udfff" for character in tag):
        return "must not have half of a surrogate pair"
    return None
