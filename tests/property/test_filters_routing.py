"""Binding keys against a matcher that simply tries everything."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.routing import check_routing_key
from cirrusmq.filters.selection import compile_filter

WORDS = st.sampled_from(["a", "b", "", "a*", "#b"])
ROUTING_KEYS = st.lists(WORDS, min_size=1, max_size=7)
BINDING_KEYS = st.lists(st.one_of(WORDS, st.sampled_from(["*", "#"])), min_size=1, max_size=7)


def matches_by_trying(places: list[str], words: list[str]) -> bool:
    if not places:
        return not words
    if places[0] == "#":
        return any(matches_by_trying(places[1:], words[n:]) for n in range(len(words) + 1))
    if not words:
        return False
    here = words[0] != "" if places[0] == "*" else places[0] == words[0]
    return here and matches_by_trying(places[1:], words[1:])


def passes(binding_keys: list[str], routing_key: str) -> bool:
    filter = compile_filter({"binding_keys": binding_keys}, "routing_key")
    return filter.matches(Filterable((), routing_key, {}))


@settings(derandomize=True, max_examples=400, deadline=None)
@given(places=BINDING_KEYS, words=ROUTING_KEYS)
def test_matching_agrees_with_trying_everything(places: list[str], words: list[str]) -> None:
    assert passes([".".join(places)], ".".join(words)) is matches_by_trying(places, words)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(
    keys=st.lists(BINDING_KEYS.map(".".join), min_size=1, max_size=5),
    routing_key=ROUTING_KEYS.map(".".join),
)
def test_several_binding_keys_match_as_any_of_them(keys: list[str], routing_key: str) -> None:
    assert passes(keys, routing_key) is any(passes([key], routing_key) for key in keys)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(words=st.lists(st.text("ab", max_size=3), min_size=1, max_size=16))
def test_a_key_without_wildcards_matches_itself_and_any_routing_key_matches_a_hash(
    words: list[str],
) -> None:
    key = check_routing_key(".".join(words), "routing_key")
    assert passes([key], key)
    assert passes(["#"], key)
