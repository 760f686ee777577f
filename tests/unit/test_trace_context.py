"""The grammar of W3C's trace context."""

from __future__ import annotations

import pytest

from cirrusmq.base import limits
from cirrusmq.model.message import Message
from cirrusmq.model.trace_context import context_of, read_headers, trace_id_of, with_context

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{PARENT}-01"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (VALID, VALID),
        (f" {VALID}\t", VALID),
        (f"00-{TRACE}-{PARENT}-ff", f"00-{TRACE}-{PARENT}-ff"),
        (f"cc-{TRACE}-{PARENT}-ff", f"00-{TRACE}-{PARENT}-03"),
        (f"cc-{TRACE}-{PARENT}-01-more-of-it", f"00-{TRACE}-{PARENT}-01"),
    ],
)
def test_a_valid_traceparent_is_kept(given: str, kept: str) -> None:
    assert read_headers({"traceparent": given}) == {"traceparent": kept}


@pytest.mark.parametrize(
    "given",
    [
        "",
        "nonsense",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}-01-",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE[1:]}-{PARENT}-01",
        f"cc-{TRACE}-{PARENT}-01.more",
        f"{VALID},{VALID}",
        f"{VALID}\n",
        f"X{VALID}",
        f"cc-{TRACE}-{PARENT}-01-\r\nx: y",
        VALID.replace("4", "\uff14"),
    ],
)
def test_an_invalid_traceparent_is_ignored_with_its_tracestate(given: str) -> None:
    assert read_headers({"traceparent": given, "tracestate": "a=1"}) == {}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("rojo=00f067aa0ba902b7", "rojo=00f067aa0ba902b7"),
        ("rojo=1 , , congo=t61rcWkgMzE\t", "rojo=1,congo=t61rcWkgMzE"),
        ("0tenant@sys=a b", "0tenant@sys=a b"),
        ("a" * 250 + "=" + "v" * 256, "a" * 250 + "=" + "v" * 256),
        ("a" * 255 + "=" + "v" * 256, "a" * 255 + "=" + "v" * 256),  # 512 characters
        ("a" * 256 + "=" + "v" * 256, None),
        (",".join(f"k{number}=1" for number in range(32)),) * 2,
        (",".join(f"k{number}=1" for number in range(33)), None),
        ("rojo=1,rojo=2", None),
        ("Rojo=1", None),
        ("0rojo=1", None),
        ("Xrojo=1", None),
        ("rojo=1\n", None),
        ("rojo", None),
        ("rojo=", None),
        ("rojo=ü", None),
        ("rojo=1=2", None),
        ("a" * 257 + "=1", None),
        ("a=" + "v" * 257, None),
        (",", None),
    ],
)
def test_a_tracestate_is_kept_if_it_is_valid_and_short(given: str, kept: str | None) -> None:
    found = read_headers({"traceparent": VALID, "tracestate": given})

    assert found == {"traceparent": VALID} | ({} if kept is None else {"tracestate": kept})


def test_a_tracestate_alone_is_ignored() -> None:
    assert read_headers({"tracestate": "a=1"}) == {}


def test_attributes_hold_a_context_only_as_texts() -> None:
    assert context_of({"traceparent": VALID.encode()}) == {}
    assert context_of({"traceparent": VALID, "tracestate": b"a=1"}) == {"traceparent": VALID}
    assert trace_id_of({"traceparent": VALID}) == TRACE
    assert trace_id_of({"traceparent": "nonsense"}) is None


CONTEXT = {"traceparent": VALID, "tracestate": "a=1"}
ADDED = 11 + 55 + 10 + 3


def given(count: int, body: str = "x") -> Message:
    return Message(body=body, attributes={f"k{number}": "" for number in range(count)})


@pytest.mark.parametrize(("count", "traced"), [(0, True), (8, True), (9, False), (10, False)])
def test_both_names_need_room(count: int, traced: bool) -> None:
    (message,) = with_context([given(count)], CONTEXT, limits.BATCH_BYTES)

    assert ("traceparent" in message.attributes) is traced
    assert len(message.attributes) == count + 2 * traced


@pytest.mark.parametrize("own", CONTEXT)
def test_a_context_of_its_own_stays(own: str) -> None:
    message = Message(body="x", attributes={own: "own"})

    assert with_context([message], CONTEXT, limits.BATCH_BYTES) == [message]


def test_the_call_stays_within_its_bytes() -> None:
    messages = [given(0, "x" * 100)] * 3

    found = with_context(messages, CONTEXT, 300 + 2 * ADDED)

    assert [len(each.attributes) for each in found] == [2, 2, 0]
    assert sum(each.size_bytes for each in found) == 300 + 2 * ADDED


def test_the_attributes_of_the_call_stay_within_their_bytes() -> None:
    filled = Message(body="x", attributes={"k": "v" * (limits.ATTRIBUTES_BYTES - 1 - ADDED)})

    found = with_context([filled, given(0), given(0)], CONTEXT, limits.BATCH_BYTES)

    assert [len(each.attributes) for each in found] == [1, 2, 0]


def test_a_message_near_the_limits_of_answers_gets_none() -> None:
    least = limits.TRACED_BYTES - ADDED

    found = with_context([given(0, "x" * least), given(0, "x" * (least + 1))], CONTEXT, 4_194_304)

    assert [len(each.attributes) for each in found] == [2, 0]
