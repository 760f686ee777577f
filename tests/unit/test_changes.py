"""The writes that transitions become: expressions, names and values, as the store takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import pytest
from tests.unit.parcels import NOW_MS, SEND_ID, parcel, source

from cirrusmq.model import transitions
from cirrusmq.model.parcel import GONE
from cirrusmq.model.receipt import NONCE_BYTES, Receipt, encode
from cirrusmq.model.transitions import Changes, MessageChange, moved
from cirrusmq.runtime.core import Core
from cirrusmq.settlement.settle import Held, Results, holds_still, settle
from cirrusmq.storage.changes import Condition, all_of, as_read, change, having, none_live, removal
from cirrusmq.storage.parcels import parcel_key

READ = parcel(
    3,
    visible_ms=(5, 6, 7),
    nonces=(b"a", b"b", b"c"),
    receives=(1, 2, 3),
    first_received_ms=(0, 2, 4),
)


NONCE = b"m" * NONCE_BYTES
WAITS = parcel(3, first_received_ms=(0, 2, 4), waits_ms=(7, 8, 9))
AWAITING = parcel(3, visible_ms=(NOW_MS + 60_000,) * 3)


def written(changes: Changes, still: Condition, **named: Any) -> tuple[str, str, dict[str, Any]]:
    """Condition, update and values of a change; everything else is asserted here."""
    request = change("messages", parcel_key(READ), changes, still, **named)
    assert request.pop("TableName") == "messages"
    assert request.pop("Key") == {
        "pk": {"S": "Q#queue#0"},
        "sk": {"S": f"{NOW_MS:013d}#{SEND_ID}"},
    }
    condition, update = request.pop("ConditionExpression"), request.pop("UpdateExpression")
    values: dict[str, Any] = request.pop("ExpressionAttributeValues")
    assert not request
    return condition, update, values


def test_a_change_writes_its_named_values_of_its_own_messages() -> None:
    changes = {
        0: MessageChange(
            visible_ms=50, nonce=b"", receives=0, first_received_ms=0, wait_ms=0, history=b"h"
        ),
        2: MessageChange(visible_ms=70),
    }
    assert written(changes, as_read(READ, changes, "visible_ms")) == (
        "v[0] = :was_v0 AND v[2] = :was_v2",
        "SET v[0] = :v0, k[0] = :k0, r[0] = :r0, f[0] = :f0, w[0] = :w0, a0 = :a0, v[2] = :v2",
        {
            ":was_v0": {"N": "5"},
            ":was_v2": {"N": "7"},
            ":v0": {"N": "50"},
            ":k0": {"B": b""},
            ":r0": {"N": "0"},
            ":f0": {"N": "0"},
            ":w0": {"N": "0"},
            ":a0": {"B": b"h"},
            ":v2": {"N": "70"},
        },
    )


@pytest.mark.parametrize(
    ("new", "touched"),
    [
        (transitions.claimed(source(), READ, 1, 5, b"n", lambda: 0.5, NOW_MS), "v k r"),
        (transitions.claimed(source(), READ, 0, 5, b"n", lambda: 0.5, NOW_MS), "v k r f"),
        (transitions.claimed(source(), WAITS, 1, 5, b"n", lambda: 0.5, NOW_MS), "v k r w"),
        (transitions.unclaimed(READ, READ, 1), "v k r f"),
        (transitions.unclaimed(READ, WAITS, 1), "v k r f w"),
        (transitions.unread(READ, READ, 1), "v k r f"),
        (transitions.unread(READ, WAITS, 1), "v k r f w"),
        (transitions.held(5, NOW_MS, NOW_MS), "v"),
        (transitions.given_back(5, NOW_MS, NOW_MS), "v k w"),
        (transitions.deleted(NOW_MS), "v f"),
        (transitions.moved(GONE), "v"),
        (transitions.dropped(), "v"),
        (transitions.reopened(READ, 0, NOW_MS, waits=False), "v k r f"),
        (transitions.reopened(WAITS, 0, NOW_MS, waits=True), "v k r f w"),
        (transitions.admitted(AWAITING, 1, NOW_MS), "v f"),
        (transitions.admitted(READ, 1, NOW_MS), "v"),
        (transitions.preceded(READ, 1), "v"),
        (transitions.delivered(READ, 1, b"h", NOW_MS), "v r a"),
        (transitions.delivered(READ, 0, b"h", NOW_MS), "v r f a"),
        (transitions.failed(READ, 1, NOW_MS, b"h", NOW_MS), "v r a"),
        (transitions.failed(READ, 0, NOW_MS, b"h", NOW_MS), "v r f a"),
        (transitions.kept(READ), "v"),
    ],
)
def test_a_transition_touches_these_attributes_of_its_own_message(
    new: MessageChange, touched: str
) -> None:
    paths = [
        f"{letter}1 = :a1" if letter == "a" else f"{letter}[1] = :{letter}1"
        for letter in touched.split()
    ]
    _, update, values = written({1: new}, as_read(READ, [1], "visible_ms"))
    assert update == "SET " + ", ".join(paths)
    assert values.keys() == {":was_v1", *(f":{letter}1" for letter in touched.split())}


def test_an_untried_receive_is_added_to_those_before_it() -> None:
    changes = {1: transitions.given_back(5, NOW_MS + 9, NOW_MS, tried=False)}
    _, update, values = written(changes, as_read(READ, changes, "visible_ms"))
    assert update == "SET v[1] = :v1, k[1] = :k1, w[1] = :w1 ADD g1 :g1"
    assert values[":g1"] == {"N": "1"}


def test_the_first_waits_of_a_parcel_are_a_list_if_it_still_has_none() -> None:
    changes = {1: MessageChange(visible_ms=60, nonce=b"n", receives=3, wait_ms=9)}
    still = as_read(READ, changes, "visible_ms")
    assert written(changes, still, first_waits_ms=(0, 9, 0)) == (
        "v[1] = :was_v1 AND attribute_not_exists(w)",
        "SET v[1] = :v1, k[1] = :k1, r[1] = :r1, w = :w",
        {
            ":was_v1": {"N": "6"},
            ":v1": {"N": "60"},
            ":k1": {"B": b"n"},
            ":r1": {"N": "3"},
            ":w": {"L": [{"N": "0"}, {"N": "9"}, {"N": "0"}]},
        },
    )


def test_an_item_may_get_another_end_rounded_up_to_seconds() -> None:
    changes = {1: moved(GONE)}
    assert written(changes, as_read(READ, changes, "visible_ms"), ends_ms=1_001) == (
        "v[1] = :was_v1",
        "SET v[1] = :v1, expires_at = :expires_at",
        {":was_v1": {"N": "6"}, ":v1": {"N": "-1"}, ":expires_at": {"N": "2"}},
    )


def test_a_condition_compares_every_named_list() -> None:
    lists: Any = ("visible_ms", "nonces", "receives", "first_received_ms")
    assert as_read(READ, [1], *lists) == (
        ("v[1] = :was_v1", "k[1] = :was_k1", "r[1] = :was_r1", "f[1] = :was_f1"),
        {
            ":was_v1": {"N": "6"},
            ":was_k1": {"B": b"b"},
            ":was_r1": {"N": "2"},
            ":was_f1": {"N": "2"},
        },
    )


def test_a_condition_may_be_of_unread_values() -> None:
    assert having("nonces", {1: b"mine"}) == (("k[1] = :was_k1",), {":was_k1": {"B": b"mine"}})


def test_a_parcel_without_live_messages_has_none_with_a_time() -> None:
    assert none_live(2) == (("v[0] <= :none", "v[1] <= :none"), {":none": {"N": "0"}})


def test_several_conditions_ask_their_common_clauses_once() -> None:
    first, second = as_read(READ, [0, 1], "visible_ms"), as_read(READ, [1], "visible_ms", "nonces")
    assert all_of([first, second]) == (
        ("v[0] = :was_v0", "v[1] = :was_v1", "k[1] = :was_k1"),
        {":was_v0": {"N": "5"}, ":was_v1": {"N": "6"}, ":was_k1": {"B": b"b"}},
    )


def held(place: int, expires_ms: int = READ.expires_ms, count: int = 3) -> Held:
    receipt = Receipt(
        source_id="queue",
        partition=0,
        sort_key=READ.sort_key,
        place=place,
        count=count,
        expires_ms=expires_ms,
        nonce=NONCE,
    )
    return Held(text="receipt", receipt=receipt, source=source(purged_ms=9))


def test_a_receipt_speaks_for_its_message_while_nobody_else_has_it() -> None:
    assert held(2).key == parcel_key(READ)
    assert holds_still(held(2), NOW_MS) == (
        (
            "x = :expires",
            "size(v) = :count",
            "t > :purged",
            "k[2] = :was_k2",
            "v[2] > :none",
            "(attribute_not_exists(w) OR w[2] = :none OR v[2] > :now)",
        ),
        {
            ":expires": {"N": str(READ.expires_ms)},
            ":count": {"N": "3"},
            ":purged": {"N": "9"},
            ":was_k2": {"B": NONCE},
            ":none": {"N": "0"},
            ":now": {"N": str(NOW_MS)},
        },
    )


def test_receipts_of_one_parcel_ask_their_common_clauses_once() -> None:
    clauses, _ = all_of(holds_still(held(place), NOW_MS) for place in (0, 1, 2))
    assert len(clauses) == 3 + 3 * 3


class _OneByOne:
    """What settling takes of a core."""

    def in_parallel(
        self, act: Callable[[list[Held]], Results], groups: Iterable[list[Held]]
    ) -> list[Results]:
        return [act(group) for group in groups]


def test_receipts_of_another_parcel_at_the_same_key_are_settled_apart() -> None:
    texts = [
        encode(one.receipt) for one in (held(0), held(1, expires_ms=7), held(2), held(2, count=4))
    ]
    together: list[list[str]] = []

    def act(_: Core, some: Sequence[Held]) -> Results:
        together.append([one.text for one in some])
        return {one.text: 0 for one in some}

    core = cast(Core, _OneByOne())
    done = settle(core, texts, lambda source_id: source(id=source_id, purged_ms=9), act)

    assert together == [[texts[0], texts[2]], [texts[1]], [texts[3]]]
    assert done == dict.fromkeys(texts, 0)


def test_a_removal_has_a_condition_and_no_update() -> None:
    assert removal("messages", parcel_key(READ), as_read(READ, [2], "receives")) == {
        "TableName": "messages",
        "Key": parcel_key(READ),
        "ConditionExpression": "r[2] = :was_r2",
        "ExpressionAttributeValues": {":was_r2": {"N": "3"}},
    }


def test_a_change_of_a_whole_parcel_is_within_the_stores_bound_of_4_kb_for_an_expression() -> None:
    full = parcel(16)
    new = MessageChange(
        visible_ms=1, nonce=b"n", receives=1, first_received_ms=1, wait_ms=1, history=b"h"
    )
    still = as_read(full, range(16), "visible_ms", "nonces", "receives", "first_received_ms")
    request = change("messages", parcel_key(full), dict.fromkeys(range(16), new), still)
    assert len(request["UpdateExpression"]) < 4_096
    assert len(request["ConditionExpression"]) < 4_096
