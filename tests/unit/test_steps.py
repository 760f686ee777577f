"""The table of steps: complete, as the code has it, and strict."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.unit.parcels import NOW_MS, parcel

import cirrusmq
from cirrusmq.model import transitions
from cirrusmq.model.parcel import CANCELLED, DELETED, GONE, MOVED, Parcel
from cirrusmq.model.steps import STEPS, step_of, stored, unlawful
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


def test_the_picture_of_the_transitions_is_that_of_the_table() -> None:
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
def test_what_no_step_does_is_unlawful(before: Parcel, change: dict[str, object]) -> None:
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
        ({"receives": (-1,)}, "received less than 0 times"),
        ({"receives": (1,), "untried": {0: 2}}, "received less than 0 times"),
    ],
)
def test_what_a_parcel_may_never_be(wrong: dict[str, object], said: str) -> None:
    assert said in (unlawful(None, replace(FREE, **wrong), NOW_MS) or "")


def test_what_a_write_may_not_change() -> None:
    assert unlawful(FREE, replace(FREE, sizes=(7,)), NOW_MS) == "sizes changed"
    assert unlawful(FREE, replace(FREE, sent_ms=FREE.sent_ms + 1), NOW_MS) is None
    older = replace(FREE, sent_ms=FREE.sent_ms - 1)
    assert unlawful(FREE, older, NOW_MS) == "an older parcel was put over it"
    assert unlawful(FREE, None, NOW_MS) is None
    assert unlawful(FREE, FREE, NOW_MS) is None
