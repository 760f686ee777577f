"""Routing keys and binding keys: words between dots, with `*` for one word and `#` for any number.

A binding key becomes a row of places, one for each of its words. While the words of a routing key
are read from left to right, one integer holds every place that they can have reached, a bit each:

    binding key   a . # . c          routing key   a . b . c
    places       0 1   2 3           reached    {0} {1,2} {2} {2,3}     3 is the end: it matches

Each word costs a handful of operations on one integer, whatever the wildcards, so that no pair of
keys is slow.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from cirrusmq.base.errors import InvalidFilter, InvalidParameter
from cirrusmq.filters.filterable import Filterable

KEY_BYTES = 64
KEY_DOTS = 15
BINDING_KEYS_PER_FILTER = 5
COMPILED_BINDING_KEYS = 4_096

ONE_WORD = "*"
ANY_WORDS = "#"


class BindingKey(msgspec.Struct, frozen=True):
    """A binding key, ready to match. In each integer bit n is the n-th place.

    `after[word]`: places with this very word next; `after_star`: places with `*` next;
    `at_hash`: places with `#` next.
    """

    after: Mapping[str, int]
    after_star: int
    at_hash: int
    end: int

    def matches(self, routing_key: str) -> bool:
        reached = self._past_hashes(1)
        for word in routing_key.split("."):
            # An empty word equals an empty word, but `*` never matches it.
            taking = self.after.get(word, 0) | (self.after_star if word else 0)
            reached = self._past_hashes(((reached & taking) << 1) | (reached & self.at_hash))
            if not reached:
                return False
        return bool(reached & self.end)

    def _past_hashes(self, places: int) -> int:
        # `#` may match no word. One shift is enough: neighbouring hashes were made one.
        return places | ((places & self.at_hash) << 1)


class RoutingFilter(msgspec.Struct, frozen=True):
    """Lets a message pass whose routing key matches at least one of the binding keys."""

    binding_keys: tuple[str, ...]

    def matches(self, message: Filterable) -> bool:
        return any(
            compile_binding_key(key).matches(message.routing_key) for key in self.binding_keys
        )

    def normalized(self) -> dict[str, object]:
        return {"binding_keys": list(self.binding_keys)}


@lru_cache(maxsize=COMPILED_BINDING_KEYS)
def compile_binding_key(text: str) -> BindingKey:
    """A binding key that keeps to the limits, ready to match."""
    words: list[str] = []
    for word in text.split("."):
        if word == ANY_WORDS and words[-1:] == [ANY_WORDS]:
            continue
        words.append(word)
    after: dict[str, int] = {}
    after_star = at_hash = 0
    for index, word in enumerate(words):
        if word == ONE_WORD:
            after_star |= 1 << index
        elif word == ANY_WORDS:
            at_hash |= 1 << index
        else:
            after[word] = after.get(word, 0) | 1 << index
    return BindingKey(after, after_star, at_hash, end=1 << len(words))


def check_routing_key(key: object, parameter: str) -> str:
    """The routing key of a message, checked: at most 64 bytes of UTF-8 and 15 dots; may be empty.

    Raises `InvalidParameter` on `parameter`.
    """
    fault = _fault(key)
    if fault is not None:
        raise InvalidParameter(parameter, fault)
    return str(key)


def binding_keys_of_list(keys: object) -> tuple[str, ...]:
    """The binding keys of a filter's `binding_keys`: 1 to 5. Raises `InvalidFilter`."""
    if not isinstance(keys, list | tuple):
        raise InvalidFilter("binding_keys: must be a list of strings")
    if not 1 <= len(keys) <= BINDING_KEYS_PER_FILTER:
        raise InvalidFilter(
            f"binding_keys: must have 1 to {BINDING_KEYS_PER_FILTER} keys, not {len(keys)}"
        )
    for position, key in enumerate(keys, start=1):
        fault = _fault(key)
        if fault is not None:
            raise InvalidFilter(f"binding_keys: key {position}: {fault}")
    return tuple(keys)


def _fault(key: object) -> str | None:
    """Returns the rule that `key` breaks, or None if it breaks none."""
    if not isinstance(key, str):
        return "must be a string"
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        return "must not have half of a surrogate pair"
    if size > KEY_BYTES:
        return f"must have at most {KEY_BYTES} bytes, not {size}"
    if key.count(".") > KEY_DOTS:
        return f"must have at most {KEY_DOTS} dots, not {key.count('.')}"
    return None
