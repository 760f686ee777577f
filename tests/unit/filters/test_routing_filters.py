"""Routing keys of messages and binding keys of subscriptions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cirrusmq.base.errors import InvalidFilter, InvalidParameter
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.routing import check_routing_key
from cirrusmq.filters.selection import compile_filter

VECTORS = json.loads((Path(__file__).parent / "routing.json").read_text())["rows"]
MORE = [
    ("#", "a..b", True),
    ("*", "", False),
    ("*.*", ".", False),
    ("1.#.0", "1..0", True),
    ("1.*.#.*.0", "1.a.0", False),
    ("1.*.#.*.0", "1.a.b.0", True),
    ("#.#.#", "", True),
    ("#.a.#", "a", True),
    ("#.a.#", "b.a.c.a", True),
    ("#.a.#", "b.c", False),
    ("#.a.b.#.c", "a.a.b.b.c", True),
    ("#.a.b.#.c", "a.a.b.b", False),
    ("a.#.#.b", "a.b", True),
    ("*.#", "a", True),
    ("*.#", "", False),
    ("#.*", "a.b", True),
    ("#.*", "", False),
    ("a.*", "a", False),
    ("a.*", "a.", False),
    ("a.b", "a.b.c", False),
    ("a.b.c", "a.b", False),
    ("", "", True),
    ("", "a", False),
    ("a..b", "a..b", True),
    ("a..b", "a.b", False),
    ("a#", "ab", False),
    ("a#", "a#", True),
    ("**", "a", False),
    ("##", "a.b", False),
    ("a.*", "a.*", True),
    ("a.b", "a.*", False),
    ("日.*", "日.本", True),
]


def passes(binding_keys: list[str], routing_key: str) -> bool:
    filter = compile_filter({"binding_keys": binding_keys}, "routing_key")
    return filter.matches(Filterable((), routing_key, {}))


@pytest.mark.parametrize(("binding_key", "routing_key", "matches"), VECTORS + MORE)
def test_the_known_results_hold(binding_key: str, routing_key: str, matches: bool) -> None:
    assert passes([binding_key], routing_key) is matches


def test_one_matching_binding_key_is_enough() -> None:
    assert passes(["a.*", "b.*"], "b.x")
    assert not passes(["a.*", "b.*"], "c.x")


def test_without_a_filter_every_routing_key_passes_and_an_absent_one() -> None:
    everything = compile_filter(None, "routing_key")
    assert everything.matches(Filterable((), "", {}))
    assert everything.matches(Filterable(("tag",), "a.b", {}))


def test_tags_do_not_matter_to_a_binding_key() -> None:
    filter = compile_filter({"binding_keys": ["a"]}, "routing_key")
    assert not filter.matches(Filterable(("a",), "", {}))


def test_binding_keys_are_shown_as_they_were_given() -> None:
    keys = ["b.*", "a.#.#"]
    filter = compile_filter({"binding_keys": keys}, "routing_key")
    assert filter.normalized() == {"binding_keys": keys}


@pytest.mark.parametrize(
    "binding_key", [".".join("#a" * 8), ".".join("#*" * 8), ".".join("#" * 16)]
)
def test_wildcards_by_the_dozen_do_not_make_matching_slow(binding_key: str) -> None:
    # A matcher that tries every way to share out the words would not end in a lifetime.
    for routing_key in (".".join("a" * 16), ".".join("a" * 15 + "b"), "." * 15):
        for _ in range(1_000):
            passes([binding_key], routing_key)


def test_five_binding_keys_are_the_most_and_one_the_least() -> None:
    assert passes(["1", "2", "3", "4", "5"], "5")
    for count in (0, 6):
        with pytest.raises(InvalidFilter, match="1 to 5 keys"):
            compile_filter({"binding_keys": ["a"] * count}, "routing_key")


@pytest.mark.parametrize("keys", ["a", None, {"a": 1}, 5])
def test_binding_keys_are_a_list(keys: object) -> None:
    with pytest.raises(InvalidFilter, match="binding_keys"):
        compile_filter({"binding_keys": keys}, "routing_key")


AT_THE_LIMIT = ["", "x" * 64, "é" * 32, "." * 15, ".".join("abcdefghijklmnop")]
BEYOND_THE_LIMIT = ["x" * 65, "é" * 32 + "x", "." * 16, None, 5, b"a", True, ["a"], "\udfff"]


@pytest.mark.parametrize("key", AT_THE_LIMIT)
def test_keys_of_64_bytes_and_15_dots_are_taken(key: str) -> None:
    assert check_routing_key(key, "routing_key") == key
    assert passes([key], key)


@pytest.mark.parametrize("key", BEYOND_THE_LIMIT)
def test_a_routing_key_beyond_the_limits_is_refused(key: object) -> None:
    with pytest.raises(InvalidParameter) as refused:
        check_routing_key(key, "messages[3].routing_key")
    assert refused.value.parameter == "messages[3].routing_key"


@pytest.mark.parametrize("key", BEYOND_THE_LIMIT)
def test_a_binding_key_beyond_the_limits_is_refused_with_its_number(key: object) -> None:
    with pytest.raises(InvalidFilter, match="key 2"):
        compile_filter({"binding_keys": ["good", key]}, "routing_key")


def test_the_refusal_of_a_routing_key_tells_the_range() -> None:
    with pytest.raises(InvalidParameter, match="at most 64 bytes, not 65"):
        check_routing_key("x" * 65, "routing_key")
    with pytest.raises(InvalidParameter, match="at most 15 dots, not 16"):
        check_routing_key("." * 16, "routing_key")
