"""Names, times, ULIDs, receipts, packed messages and item sizes as pure values."""

from __future__ import annotations

import random

import pytest

from cirrusmq import names, receipt, ulid
from cirrusmq.errors import InvalidParameter
from cirrusmq.message import Message, pack, unpack
from cirrusmq.names import QueueRef, check_name, new_id, parse_queue_ref
from cirrusmq.receipt import Receipt
from cirrusmq.timestamps import format_time, parse_time


class TestNames:
    @pytest.mark.parametrize("name", ["a", "Z9", "a" * 64, "a-_b"])
    def test_a_legal_name_is_answered(self, name: str) -> None:
        assert check_name("queue", name) == name

    @pytest.mark.parametrize("name", ["", "9a", "_a", "a" * 65, "a\n", "ä", "a b", "a٣"])
    def test_another_is_refused_by_its_parameter(self, name: str) -> None:
        with pytest.raises(InvalidParameter) as refused:
            check_name("queue", name)
        assert refused.value.parameter == "queue"

    def test_a_queue_is_the_callers_own_unless_the_name_says(self) -> None:
        assert parse_queue_ref("q", "alice") == QueueRef("alice", "q")
        assert parse_queue_ref("bob:q", "alice") == QueueRef("bob", "q")
        for wrong in ("a:b:c", ":q", "bob:", ":", "1:q"):
            with pytest.raises(InvalidParameter):
                parse_queue_ref(wrong, "alice")

    def test_ids_are_12_characters_and_never_the_same(self) -> None:
        chance = random.Random(1)
        ids = {new_id(chance) for _ in range(10_000)}
        assert len(ids) == 10_000
        assert {len(each) for each in ids} == {names.ID_CHARACTERS}


class TestUlids:
    def test_a_known_one(self) -> None:
        # The example of the specification: 2016-07-30T23:54:10.259Z.
        assert ulid.time_of("01ARZ3NDEKTSV4RRFFQ69G5FAV") == 1_469_922_850_259

    def test_upper_and_lower_case_are_the_same(self) -> None:
        assert ulid.time_of("01arz3ndektsv4rrffq69g5fav") == 1_469_922_850_259

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "0" * 25,
            "0" * 27,
            "8" + "0" * 25,
            "0" * 25 + "I",
            "0" * 25 + "\u017f",
            "0" * 25 + "ß",
        ],
    )
    def test_what_is_none_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"ULID|base 32"):
            ulid.time_of(text)

    def test_they_sort_by_time(self) -> None:
        chance = random.Random(2)
        made = [ulid.encode(ms, chance.randbytes(10)) for ms in range(0, 2**48, 2**40)]
        assert made == sorted(made)


class TestTimes:
    def test_a_time_has_milliseconds_and_a_z(self) -> None:
        assert format_time(1_795_000_000_007) == "2026-11-18T11:06:40.007Z"
        assert format_time(0) == "1970-01-01T00:00:00.000Z"

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2026-11-18T11:06:40.007Z", 1_795_000_000_007),
            ("2026-11-18t11:06:40.007z", 1_795_000_000_007),
            ("2026-11-18T11:06:40Z", 1_795_000_000_000),
            ("2026-11-18T11:06:40.0079999Z", 1_795_000_000_007),
            ("2026-11-18T12:36:40+01:30", 1_795_000_000_000),
        ],
    )
    def test_rfc_3339_is_read(self, text: str, expected: int) -> None:
        assert parse_time("to", text) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "", "2026", "2026-11-18", "2026-11-18 11:06:40Z", "2026-11-18T11:06:40",
            "2026-13-18T11:06:40Z", "2026-02-30T11:06:40Z", "2026-11-18T25:06:40Z",
            "1795000000", "2026-11-18T11:06:40.Z", "2026-11-18T11:06:40Z\n", "٢٠٢٦-11-18T11:06:40Z",
        ],
    )  # fmt: skip
    def test_what_is_none_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidParameter) as refused:
            parse_time("to", text)
        assert refused.value.parameter == "to"


class TestReceipts:
    RECEIPT = Receipt(
        source_id="0123456789ab",
        partition=254,
        sort_key="1795000000000#01ARZ3NDEKTSV4RRFFQ69G5FAV.F.1a1ee0ee0e0",
        place=15,
        count=16,
        expires_ms=1_796_296_000_000,
        nonce=bytes(range(16)),
    )

    def test_a_receipt_is_short_url_safe_text(self) -> None:
        text = receipt.encode(self.RECEIPT)
        assert receipt.decode(text) == self.RECEIPT
        assert len(text) < 200
        assert text.replace("-", "").replace("_", "").isalnum()

    @pytest.mark.parametrize("text", ["", "x", "=", "é", "\0" * 9, "a" * 2_048, "gA", "kA"])
    def test_what_we_never_wrote_is_none(self, text: str) -> None:
        assert receipt.decode(text) is None

    def test_a_nonce_of_an_attempt_depends_on_every_part(self) -> None:
        parts = ["key", "queue", "attempt", "message"]
        nonces = {receipt.attempt_nonce(b"s", *parts)}
        for place in range(4):
            nonces.add(receipt.attempt_nonce(b"s", *parts[:place], "x", *parts[place + 1 :]))
        nonces.add(receipt.attempt_nonce(b"t", *parts))
        assert len(nonces) == 6
        assert {len(nonce) for nonce in nonces} == {16}


def test_messages_survive_packing_and_are_deflated_where_that_is_smaller() -> None:
    plain = [Message(body="x", attributes={"a": b"\0", "b": ""}, tags=("t",), group="g")]
    long = [Message(body="ab" * 5_000), Message(body=b"\xff\0")]

    assert unpack(pack(plain)) == plain
    assert unpack(pack(long)) == long
    assert len(pack(long)) < 200
    noise = random.Random(4).randbytes(5_000)
    assert len(pack([Message(body=noise)])) < 5_020
