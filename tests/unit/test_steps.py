"""The table of steps: complete, as the code has it, and strict."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.parcels import NOW_MS, parcel

import cirrusmq
from cirrusmq.model import transitions
from cirrusmq.model.parcel import CANCELLED, DELETED, DROPPED, GONE, MOVED, Parcel
from cirrusmq.model.steps import STEPS, StoredMessage, step_of, stored, unlawful
from cirrusmq.model.transitions import MessageChange, changed

CORE = Path(cirrusmq.__file__).parent
NONCE, OTHER = b"n" * 16, b"o" * 16
FREE = parcel(1, visible_ms=(NOW_MS,))
HELD = replace(FREE, visible_ms=(NOW_MS + 30_000,), nonces=(NONCE,), receives=(1,))
NO_STEPS = {"changed", "under_key", "as_in", "untried"}
"""What makes no step of a stored message: parcels in memory, and readings."""


def picture() -> list[str]:
    """The steps by where they begin and end, as the docstring of the transitions has them."""
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for step in STEPS:
        names[" or ".join(step.before), " or ".join(step.after)].append(step.name)
    lines = [
        f"    {before:<13} ──({', '.join(steps)})──> {after}"
        for (before, after), steps in sorted(names.items())
    ]
    return lines


def test_the_picture_of_the_transitions_matches_the_table() -> None:
    assert "\n".join(picture()) in (transitions.__doc__ or "")


def test_every_transition_has_a_row() -> None:
    functions = {
        name
        for name, made in inspect.getmembers(transitions, inspect.isfunction)
        # x_…: what a planted fault left of a function, where `make mutants` plays these tests.
        if made.__module__ == transitions.__name__ and not name.startswith(("_", "x_"))
    }
    assert {step.name for step in STEPS} == functions - NO_STEPS


def test_a_step_is_made_by_the_packages_of_its_row() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for path in CORE.rglob("*.py"):
        package = path.relative_to(CORE).parts[0]
        if package != "model":
            for name in _transitions_used(ast.parse(path.read_text())):
                found[name].add(package)
    assert {step.name: sorted(step.by) for step in STEPS} == {
        step.name: sorted(found[step.name]) for step in STEPS
    }


def _transitions_used(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == transitions.__name__:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "transitions":
            yield node.attr


FIRST = stored(FREE, 0)
"""A message that was never received, and is visible now."""
LEASED = FIRST._replace(state="held", visible_ms=NOW_MS + 30_000, nonce=NONCE, receives=1)
DELAYED = FIRST._replace(visible_ms=NOW_MS + 9)
REWOUND = FIRST._replace(visible_ms=FREE.expires_ms)
GIVEN_BACK = FIRST._replace(receives=1)
ENDED = FIRST._replace(state="deleted", visible_ms=DELETED, nonce=NONCE, receives=3)


@pytest.mark.parametrize(
    ("name", "before", "change"),
    [
        ("", FIRST, {}),
        ("claimed", FIRST, LEASED._asdict()),
        ("claimed", FIRST._replace(visible_ms=NOW_MS - 5, wait_ms=5), LEASED._asdict()),
        ("claimed", LEASED._replace(visible_ms=NOW_MS - 1), {"nonce": OTHER, "receives": 2}),
        ("unread", LEASED, {"state": "free", "nonce": b"", "receives": 0}),
        ("unclaimed", LEASED, {**FIRST._asdict(), "visible_ms": NOW_MS - 1}),
        ("unclaimed", LEASED._replace(receives=2), {"nonce": OTHER, "receives": 1}),
        ("preceded", FIRST, {"visible_ms": FIRST.visible_ms + 1}),
        ("preceded", LEASED, {"visible_ms": LEASED.visible_ms + 1}),
        ("held", LEASED, {"visible_ms": LEASED.visible_ms + 2}),
        ("held", LEASED, {"visible_ms": NOW_MS}),
        ("given_back", LEASED, {"state": "free", "visible_ms": NOW_MS, "nonce": b""}),
        ("deleted", LEASED, {"state": "deleted", "visible_ms": DELETED}),
        ("moved", FIRST, {"state": "gone", "visible_ms": GONE}),
        ("moved", LEASED, {"state": "moved", "visible_ms": MOVED}),
        ("dropped", LEASED, {"state": "dropped", "visible_ms": DROPPED}),
        ("cancelled", FIRST, {"state": "cancelled", "visible_ms": CANCELLED}),
        ("reopened", ENDED, {**FIRST._asdict(), "visible_ms": FREE.expires_ms}),
        ("kept", GIVEN_BACK, {"visible_ms": FREE.expires_ms}),
        ("admitted", REWOUND, {"visible_ms": NOW_MS}),
        ("admitted", FIRST, {"visible_ms": NOW_MS - 7}),
        ("delivered", FIRST, {"state": "deleted", "visible_ms": 0, "receives": 1, "history": b"h"}),
        ("failed", FIRST, {"visible_ms": NOW_MS + 9, "receives": 1, "history": b"h"}),
    ],
)
def test_each_step_is_known_by_its_changes(
    name: str, before: StoredMessage, change: dict[str, Any]
) -> None:
    assert step_of(before, before._replace(**change), NOW_MS) == name


@pytest.mark.parametrize(
    ("before", "change"),
    [
        pytest.param(
            *(FIRST._replace(visible_ms=NOW_MS - 5, wait_ms=6), LEASED._asdict()),
            id="claimed before its retry",
        ),
        pytest.param(REWOUND, {"visible_ms": NOW_MS + 1}, id="admitted, but still hidden"),
        pytest.param(DELAYED, {"visible_ms": NOW_MS}, id="admitted before its delay was over"),
        pytest.param(
            *(REWOUND._replace(receives=1), {"visible_ms": NOW_MS}),
            id="admitted though it was received",
        ),
        pytest.param(FIRST, {"visible_ms": NOW_MS + 2}, id="two later"),
        pytest.param(
            *(GIVEN_BACK, {"state": "cancelled", "visible_ms": CANCELLED}),
            id="cancelled after a receive",
        ),
        pytest.param(
            *(FIRST, {"state": "cancelled", "visible_ms": CANCELLED, "nonce": NONCE}),
            id="cancelled with a receipt",
        ),
        pytest.param(
            *(FIRST, {"visible_ms": NOW_MS + 9, "receives": 1}), id="failed without a history"
        ),
    ],
)
def test_a_step_forbidden_by_its_guard_is_none(
    before: StoredMessage, change: dict[str, Any]
) -> None:
    assert step_of(before, before._replace(**change), NOW_MS) is None


def test_a_message_is_read_from_its_place_in_the_parcel() -> None:
    item = parcel(
        3,
        visible_ms=(NOW_MS, NOW_MS + 5, GONE),
        nonces=(b"", NONCE, OTHER),
        receives=(0, 4, 2),
        first_received_ms=(0, NOW_MS - 7, 0),
        waits_ms=(0, 11, 0),
        untried={1: 3},
        histories={1: b"h"},
    )
    expires_ms = item.expires_ms

    assert [stored(item, index) for index in range(3)] == [
        StoredMessage("free", NOW_MS, b"", 0, 0, 0, 0, b"", expires_ms),
        StoredMessage("held", NOW_MS + 5, NONCE, 4, NOW_MS - 7, 11, 3, b"h", expires_ms),
        StoredMessage("gone", GONE, OTHER, 2, 0, 0, 0, b"", expires_ms),
    ]


def after(before: Parcel, **change: object) -> Parcel:
    return changed(before, {0: MessageChange(**{"visible_ms": before.visible_ms[0], **change})})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "change"),
    [
        pytest.param(FREE, {"visible_ms": NOW_MS + 9, "nonce": NONCE}, id="claimed, not counted"),
        pytest.param(
            *(replace(FREE, visible_ms=(NOW_MS + 1,)),),
            {"visible_ms": NOW_MS + 9, "nonce": NONCE, "receives": 1},
            id="claimed while it is hidden",
        ),
        pytest.param(
            *(replace(HELD, visible_ms=(NOW_MS,)),),
            {"visible_ms": NOW_MS + 9, "receives": 2},
            id="claimed with the receipt of before",
        ),
        pytest.param(FREE, {"visible_ms": DELETED}, id="deleted by nobody"),
        pytest.param(HELD, {"visible_ms": DELETED, "nonce": OTHER}, id="deleted by another"),
        pytest.param(HELD, {"visible_ms": NOW_MS, "nonce": OTHER}, id="held by another"),
        pytest.param(HELD, {"visible_ms": CANCELLED}, id="cancelled while it is held"),
        pytest.param(
            *(replace(FREE, visible_ms=(GONE,)),), {"visible_ms": NOW_MS}, id="come back from gone"
        ),
        pytest.param(
            *(replace(FREE, visible_ms=(MOVED,)),), {"visible_ms": GONE}, id="moved and then gone"
        ),
        pytest.param(
            *(replace(FREE, visible_ms=(DELETED,), receives=(1,)),),
            {"visible_ms": NOW_MS},
            id="rewound with its receive count",
        ),
        pytest.param(FREE, {"visible_ms": DELETED, "receives": 1}, id="delivered without a post"),
        pytest.param(FREE, {"visible_ms": NOW_MS + 9}, id="hidden by nobody"),
    ],
)
def test_a_change_without_a_step_is_unlawful(before: Parcel, change: dict[str, object]) -> None:
    then = after(before, **change)

    assert step_of(stored(before, 0), stored(then, 0), NOW_MS) is None
    assert "as no step does" in (unlawful(before, then, NOW_MS) or "")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"nonces": ()}, "nonces has not one value"),
        ({"waits_ms": (1, 2)}, "waits_ms has not one value"),
        ({"visible_ms": (-9,)}, "a mark that is none"),
        ({"visible_ms": (FREE.expires_ms + 9,)}, "hidden beyond its expiry"),
        ({"visible_ms": (FREE.expires_ms + 2,)}, "hidden beyond its expiry"),
        ({"receives": (-1,)}, "received less than 0 times"),
        ({"receives": (1,), "untried": {0: 2}}, "received less than 0 times"),
    ],
)
def test_impossible_parcels(wrong: dict[str, object], said: str) -> None:
    assert said in (unlawful(None, replace(FREE, **wrong), NOW_MS) or "")


def test_a_message_may_be_hidden_to_its_expiry_and_a_millisecond_more() -> None:
    for more in (0, 1):
        assert unlawful(None, replace(FREE, visible_ms=(FREE.expires_ms + more,)), NOW_MS) is None


def test_forbidden_changes_of_a_write() -> None:
    assert unlawful(FREE, replace(FREE, sizes=(7,)), NOW_MS) == "sizes changed"
    assert unlawful(FREE, replace(FREE, sent_ms=FREE.sent_ms + 1), NOW_MS) is None
    older = replace(FREE, sent_ms=FREE.sent_ms - 1)
    assert unlawful(FREE, older, NOW_MS) == "an older parcel was put over it"
    assert unlawful(FREE, None, NOW_MS) is None
    assert unlawful(FREE, FREE, NOW_MS) is None
