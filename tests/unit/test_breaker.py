"""The rules of a breaker: when it opens, when it tries a message, and what an item keeps of it."""

from __future__ import annotations

import pytest

from cirrusmq.model.breaker import (
    OUTCOMES,
    PART_MS,
    PARTS,
    Breaker,
    BreakerInput,
    Circuit,
    after_post,
    after_probe,
    packed,
    unpack,
)
from cirrusmq.model.invoke import Invoke, InvokeInput

NOW_MS = 1_795_000_000_000
HALF = Breaker(0.5)


def after(outcomes: str, *, breaker: Breaker = HALF, step_ms: int = 0) -> Circuit:
    """The state after these outcomes, `x` a failure, one each `step_ms`."""
    circuit = Circuit()
    for number, outcome in enumerate(outcomes):
        error = "status 503" if outcome == "x" else None
        circuit = after_post(circuit, breaker, NOW_MS + number * step_ms, error)
    return circuit


@pytest.mark.parametrize(
    ("outcomes", "share", "is_open"),
    [
        ("x" * 19, 0.5, False),
        ("x" * 20, 0.5, True),
        ("x" * 20, 1.0, True),
        ("." + "x" * 30, 1.0, False),
        ("." * 10 + "x" * 10, 0.5, True),
        ("." * 11 + "x" * 10, 0.5, False),
        ("." * 18 + "x" * 2, 0.1, True),
        ("." * 19 + "x", 0.1, False),
        ("x" * 10 + "." * 30, 0.5, False),
    ],
)
def test_it_opens_by_the_share_of_twenty_outcomes(
    outcomes: str, share: float, is_open: bool
) -> None:
    assert after(outcomes, breaker=Breaker(share)).is_open is is_open


def test_a_success_never_opens_it() -> None:
    failed = after("x" * (OUTCOMES - 1))
    assert not after_post(failed, HALF, NOW_MS, None).is_open


def test_outcomes_of_more_than_a_minute_ago_do_not_count() -> None:
    assert after("x" * OUTCOMES, step_ms=2_600).is_open
    assert not after("x" * 40, step_ms=4_000).is_open


@pytest.mark.parametrize(("parts", "opens"), [(-2, False), (-1, True), (5, True), (6, False)])
def test_the_minute_is_of_six_parts_and_one_more_for_a_clock_ahead(parts: int, opens: bool) -> None:
    failed = after("x" * (OUTCOMES - 1))
    last = after_post(failed, HALF, NOW_MS + parts * PART_MS, "timeout")
    assert last.is_open is opens
    assert last.error == ("timeout" if opens else "")


def test_its_counts_have_a_bounded_size() -> None:
    circuit = after("." * 1_000, step_ms=PART_MS)
    assert len(circuit.counts) == PARTS
    assert sum(each[1] for each in circuit.counts) == PARTS


def test_an_outcome_of_a_clock_behind_is_counted() -> None:
    circuit = after_post(after("x" * 10), HALF, NOW_MS - PART_MS, "timeout")
    assert sum(each[2] for each in circuit.counts) == 11


def test_outcomes_do_not_change_an_open_one() -> None:
    circuit = after("x" * OUTCOMES)
    assert after_post(circuit, HALF, NOW_MS + 5, None) == circuit
    assert after_post(circuit, HALF, NOW_MS + 5, "timeout") == circuit


def test_waits_double_to_a_minute_and_a_success_clears_everything() -> None:
    circuit = after("x" * OUTCOMES)
    waits = [circuit.probe_ms - NOW_MS]
    for _ in range(8):
        circuit = after_probe(circuit, NOW_MS, "timeout")
        waits.append(circuit.probe_ms - NOW_MS)
    assert waits == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]
    assert (circuit.opened_ms, circuit.error) == (NOW_MS, "timeout")
    assert after_probe(circuit, NOW_MS, None) == Circuit()


def test_a_longer_wait_asked_for_by_the_subscriber_holds() -> None:
    circuit = after("x" * OUTCOMES)
    assert after_probe(circuit, NOW_MS, "status 503", 90_000).probe_ms == NOW_MS + 90_000
    assert after_probe(circuit, NOW_MS, "status 503", 10).probe_ms == NOW_MS + 2_000


@pytest.mark.parametrize("outcomes", ["", "x", "x.x" * 5, "x" * OUTCOMES])
def test_an_item_keeps_the_state(outcomes: str) -> None:
    circuit = after(outcomes, step_ms=7_000 if len(outcomes) < OUTCOMES else 0)
    assert unpack(packed(circuit), circuit.error) == circuit
    assert unpack((), "") == unpack((1,), "") == Circuit()


def test_an_open_one_tells_why_the_newest_post_failed() -> None:
    circuit = after("x" * OUTCOMES)
    assert (circuit.opened_ms, circuit.error) == (NOW_MS, "status 503")


def test_numbers_of_an_incomplete_part_are_left_out() -> None:
    assert unpack((0, 0, 0, 7, 1, 2, 8), "") == Circuit(counts=((7, 1, 2),))


def test_a_function_has_a_breaker_of_the_same_kind() -> None:
    given = InvokeInput(function="work", breaker=BreakerInput(share=0.25))
    assert given.chosen() == Invoke(function="work", breaker=Breaker(0.25))
    assert InvokeInput(function="work", breaker=None).chosen() == Invoke(function="work")


def test_the_default_is_a_half() -> None:
    assert BreakerInput().chosen() == Breaker(0.5)
    assert BreakerInput(share=0.25).chosen() == Breaker(0.25)
