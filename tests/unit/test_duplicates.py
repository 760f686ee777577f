"""Messages of a batch that are duplicates by their deduplication ids, and are stored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from cirrusmq.model.message import Message
from cirrusmq.sending.deduplication import Duplicate, Stored, reminders
from cirrusmq.sending.request_messages import store_once, stored

SEND_ID = "01M7Q5CQG0F81FFGDXGX6TBSR9"
EARLIER = Stored(id="Msg-earlier", body_md5="e", sent_ms=1)


class Store:
    """Answers `stored <place>` for each message, and knows some ids from before."""

    def __init__(self, *rounds: dict[str, Stored]) -> None:
        self._rounds = list(rounds)
        self.asked: list[list[int]] = []

    def __call__(self, places: Sequence[int]) -> Mapping[int, str]:
        self.asked.append(list(places))
        if self._rounds:
            raise Duplicate(self._rounds.pop(0))
        return {place: f"stored {place}" for place in places}


def test_messages_without_ids_are_all_stored() -> None:
    store = Store()
    assert store_once({0: None, 2: None}, store) == ({0: "stored 0", 2: "stored 2"}, {})
    assert store.asked == [[0, 2]]


def test_a_second_message_with_an_id_is_answered_as_the_first() -> None:
    store = Store()
    fresh, duplicates = store_once({0: "a", 1: None, 2: "a", 3: "b", 4: "a"}, store)
    assert store.asked == [[0, 1, 3]]
    assert fresh == {0: "stored 0", 1: "stored 1", 3: "stored 3"}
    assert duplicates == {2: "stored 0", 4: "stored 0"}


def test_a_known_id_is_answered_as_before() -> None:
    store = Store({"a": EARLIER}, {"c": EARLIER})
    fresh, duplicates = store_once({0: "a", 1: "b", 2: "a", 3: "c"}, store)
    assert store.asked == [[0, 1, 3], [1, 3], [1]]
    assert fresh == {1: "stored 1"}
    assert duplicates == {0: EARLIER, 2: EARLIER, 3: EARLIER}


def test_a_batch_of_known_ids_stores_nothing() -> None:
    store = Store({"a": EARLIER})
    assert store_once({0: "a"}, store) == ({}, {0: EARLIER})
    assert store.asked == [[0]]
    assert store_once({}, store) == ({}, {})
    assert store.asked == [[0]]


def test_a_message_says_its_place_in_the_request() -> None:
    body = Message(body="x")
    assert stored(SEND_ID, {10: body}, 7) == {
        10: Stored(id=f"Msg-{SEND_ID}A", body_md5="9dd4e461268c8034f5c8564e155c67a6", sent_ms=7)
    }


@pytest.mark.parametrize("life_ms", [300_000, 1_000])
def test_messages_with_an_id_are_remembered_by_it(life_ms: int) -> None:
    messages = {place: Stored(id=f"id{place}", body_md5="5", sent_ms=1) for place in (0, 3)}
    ((key, item),) = reminders("queue", {0: None, 3: "k"}, messages, life_ms)
    assert key == "k"
    assert item["pk"]["S"].startswith("D#queue#")
    assert (item["i"], item["h"], item["t"]) == ({"S": "id3"}, {"S": "5"}, {"N": "1"})
    assert item["x"] == {"N": str(1 + life_ms)}
    ((_, other),) = reminders("topic", {3: "k"}, {3: messages[3]})
    assert other["pk"] != item["pk"]
