"""Names, times, ULIDs, receipts, packed messages and item sizes as pure values."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from cirrusmq.base import names, ulid
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.names import (
    QUEUE_NAME,
    NameRule,
    QueueRef,
    check_name,
    new_id,
    other_fifo_name,
    parse_queue_ref,
    parse_topic_ref,
)
from cirrusmq.base.timestamps import format_time, parse_moment, parse_time
from cirrusmq.model import receipt
from cirrusmq.model.message import Message, pack, unpack
from cirrusmq.model.receipt import Receipt
from cirrusmq.runtime.secret import derive


class TestNames:
    @pytest.mark.parametrize("name", ["a", "Z9", "a" * 80, "a-_b", "9a", "_a", "-", "a.fifo"])
    def test_a_legal_name_is_answered(self, name: str) -> None:
        assert check_name("queue", name, QUEUE_NAME) == name

    @pytest.mark.parametrize("name", ["", "a" * 81, "a\n", "ä", "a b", "a٣", "a.b", ".fifo"])
    def test_another_is_refused_by_its_parameter(self, name: str) -> None:
        with pytest.raises(InvalidParameter) as refused:
            check_name("queue", name, QUEUE_NAME)
        assert refused.value.parameter == "queue"
        assert refused.value.detail == (
            "queue: must be 1 to 80 characters: letters, digits, '-' and '_', at the end .fifo"
        )

    def test_a_rule_has_a_length_and_may_ask_for_a_letter_first(self) -> None:
        rule = NameRule(3, 4)
        assert check_name("name", "a9-", rule) == "a9-"
        for wrong in ("ab", "abcde", "9ab", "_ab", "äbc"):
            with pytest.raises(InvalidParameter, match="must be 3 to 4 characters: a letter, then"):
                check_name("name", wrong, rule)

    def test_a_rule_without_fifo_queues_allows_no_point(self) -> None:
        with pytest.raises(InvalidParameter) as refused:
            check_name("name", "abc.fifo", NameRule(3, 9))
        assert refused.value.detail == (
            "name: must be 3 to 9 characters: a letter, then letters, digits, '-' and '_'"
        )

    @pytest.mark.parametrize(
        ("name", "other"),
        [
            ("orders.fifo", "orders_fifo"),
            ("orders_fifo", "orders.fifo"),
            ("a_fifo_fifo", "a_fifo.fifo"),
            ("_fifo.fifo", "_fifo_fifo"),
            ("orders", None),
            ("fifo", None),
            ("_fifo", None),
            (".fifo", None),
            ("orders_fifo_", None),
        ],
    )
    def test_an_ordered_queue_has_one_of_two_names(self, name: str, other: str | None) -> None:
        assert other_fifo_name(name) == other

    def test_a_queue_is_the_callers_own_unless_the_name_says(self) -> None:
        assert parse_queue_ref("q", "alice") == QueueRef("alice", "q")
        assert parse_queue_ref("bob:q", "alice") == QueueRef("bob", "q")
        for wrong in ("a:b:c", ":q", "bob:", ":", "1:q"):
            with pytest.raises(InvalidParameter) as refused:
                parse_queue_ref(wrong, "alice", "target")
            assert refused.value.parameter == "target"
        with pytest.raises(InvalidParameter, match=r"^queue: "):
            parse_queue_ref("", "alice")

    def test_a_topic_is_named_as_a_queue_is_with_1_to_256_characters(self) -> None:
        assert parse_topic_ref("abc", "alice") == QueueRef("alice", "abc")
        assert parse_topic_ref("b:a.fifo", "alice") == QueueRef("b", "a.fifo")
        for wrong in (".fifo", "a.b", "a.fifo.fifo", "bob:" + "a" * 257, "a" * 252 + ".fifo"):
            with pytest.raises(InvalidParameter, match=r"^topic: must be 1 to 256 characters"):
                parse_topic_ref(wrong, "alice")
        with pytest.raises(InvalidParameter, match=r"^to: must be 1 to 64 characters"):
            parse_topic_ref("9:abc", "alice", "to")

    def test_ids_are_12_characters_and_never_the_same(self) -> None:
        chance = random.Random(1)
        ids = {new_id(chance) for _ in range(10_000)}
        assert len(ids) == 10_000
        assert {len(each) for each in ids} == {names.ID_CHARACTERS}

    def test_an_id_tells_60_random_bits_apart_and_takes_no_more(self) -> None:
        class Fixed(random.Random):
            def getrandbits(self, count: int, /) -> int:
                assert count == 60
                return bits

        bits = sum(place << 5 * place for place in range(12))
        assert new_id(Fixed()) == "0123456789ab"
        bits = 2**60 - 1
        assert new_id(Fixed()) == "z" * 12


class TestUlids:
    def test_a_known_one(self) -> None:
        # The example of the specification: 2016-07-30T23:54:10.259Z.
        assert ulid.time_of("01ARZ3NDEKTSV4RRFFQ69G5FAV") == 1_469_922_850_259
        entropy = bytes.fromhex("d6764c61efb99302bd5b")
        assert ulid.encode(1_469_922_850_259, entropy) == "01ARZ3NDEKTSV4RRFFQ69G5FAV"

    def test_its_entropy_is_the_given_entropy(self) -> None:
        assert ulid.entropy_of("01ARZ3NDEKTSV4RRFFQ69G5FAV").hex() == "d6764c61efb99302bd5b"
        for entropy in (bytes(10), b"\xff" * 10, bytes(range(10))):
            for time_ms in (0, 1_469_922_850_259, 2**48 - 1):
                assert ulid.entropy_of(ulid.encode(time_ms, entropy)) == entropy
        with pytest.raises(ValueError, match=r"^a ULID has 26 characters$"):
            ulid.entropy_of("0" * 25)

    def test_the_last_one_is_read_and_the_next_has_129_bits(self) -> None:
        assert ulid.encode(2**48 - 1, b"\xff" * 10) == "7" + "Z" * 25
        assert ulid.time_of("7" + "Z" * 25) == 2**48 - 1
        assert ulid.encode(0, bytes(10)) == "0" * 26
        with pytest.raises(ValueError, match=r"^a ULID has 128 bits$"):
            ulid.time_of("8" + "0" * 25)

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
    def test_an_invalid_ulid_is_refused(self, text: str) -> None:
        reasons = "a ULID has 26 characters|a ULID has 128 bits|'.+' is not in Crockford's base 32"
        with pytest.raises(ValueError, match=f"^({reasons})$"):
            ulid.time_of(text)

    def test_those_of_a_time_begin_alike(self) -> None:
        times_ms = (0, 1, 1_469_922_850_259, ulid.LAST_MS)
        assert [ulid.first(time_ms) for time_ms in times_ms] == [
            "0" * 10,
            "0" * 9 + "1",
            "01ARZ3NDEK",
            "7" + "Z" * 9,
        ]

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
    def test_an_invalid_time_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidParameter) as refused:
            parse_time("to", text)
        assert refused.value.parameter == "to"
        assert refused.value.detail == (
            "to: must be an RFC 3339 time, such as 2026-11-20T08:00:00.123Z"
        )

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("2026-11-18T11:06:40.007Z", 1_795_000_000_007),
            (1_795_000_000, 1_795_000_000_000),
            (1_795_000_000.25, 1_795_000_000_250),
            (0, 0),
            (0.0019, 1),
            (253_402_300_799, 253_402_300_799_000),
        ],
    )
    def test_a_moment_is_a_time_or_seconds_since_1970(
        self, value: str | float, expected: int
    ) -> None:
        assert parse_moment("to", value) == expected

    @pytest.mark.parametrize(
        "value", [-1, -0.001, 253_402_300_800, 1e300, float("inf"), float("nan")]
    )
    def test_seconds_before_1970_or_after_the_year_9999_are_refused(self, value: float) -> None:
        with pytest.raises(InvalidParameter) as refused:
            parse_moment("to", value)
        assert refused.value.parameter == "to"
        assert refused.value.detail == "to: must be 0 to 253,402,300,799 seconds since 1970"

    def test_a_text_without_a_moment_is_refused_as_a_time(self) -> None:
        with pytest.raises(InvalidParameter, match=r"^deliver_at: must be an RFC 3339 time, "):
            parse_moment("deliver_at", "1795000000")


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
    def test_a_foreign_text_is_no_receipt(self, text: str) -> None:
        assert receipt.decode(text) is None

    @pytest.mark.parametrize(
        "edge",
        [
            {"place": 0, "count": 1},
            {"partition": 0},
            {"partition": 255},
            {"expires_ms": 0},
            {"expires_ms": 2**53 - 1},
            {"sort_key": "x"},
            {"sort_key": "x" * 128},
        ],
    )
    def test_a_receipt_at_the_edge_of_our_range_is_read(self, edge: dict[str, Any]) -> None:
        made = replace(self.RECEIPT, **edge)
        assert receipt.decode(receipt.encode(made)) == made

    @pytest.mark.parametrize(
        "beyond",
        [
            {"place": -1},
            {"place": 1, "count": 1},
            {"place": 0, "count": 0},
            {"count": 17},
            {"place": 16, "count": 17},
            {"partition": -1},
            {"partition": 256},
            {"expires_ms": -1},
            {"expires_ms": 2**53},
            {"sort_key": ""},
            {"sort_key": "x" * 129},
            {"sort_key": "é"},
            {"nonce": bytes(15)},
            {"nonce": bytes(17)},
        ],
    )
    def test_a_receipt_beyond_it_is_none(self, beyond: dict[str, Any]) -> None:
        assert receipt.decode(receipt.encode(replace(self.RECEIPT, **beyond))) is None

    @pytest.mark.parametrize("more", ["=", "==", "A", "AA", "AAAA", "\n", " ", "!"])
    def test_a_receipt_with_anything_behind_it_is_none(self, more: str) -> None:
        assert receipt.decode(receipt.encode(self.RECEIPT) + more) is None

    def test_receipts_of_every_length_are_read(self) -> None:
        for length in range(1, 9):
            made = replace(self.RECEIPT, source_id="x" * length)
            text = receipt.encode(made)
            assert "=" not in text
            assert receipt.decode(text) == made

    def test_receipts_with_every_last_byte_are_read(self) -> None:
        for last in range(256):
            for source_id in ("x", "xx", "xxx"):
                made = replace(self.RECEIPT, source_id=source_id, nonce=bytes([*range(15), last]))
                assert receipt.decode(receipt.encode(made)) == made

    def test_a_leases_nonce_has_the_draw_and_the_seconds_of_its_end(self) -> None:
        drawn = bytes(range(16))
        nonce = receipt.lease_nonce(drawn, 1_795_000_123_999)
        assert nonce == drawn[:12] + (1_795_000_123).to_bytes(4, "big")
        assert len(nonce) == receipt.NONCE_BYTES
        assert receipt.lease_end_ms(nonce) == 1_795_000_123_000

    def test_the_same_draw_is_known_in_leases_with_other_ends(self) -> None:
        drawn = bytes(range(16))
        first, second = (receipt.lease_nonce(drawn, end_ms) for end_ms in (1_000, 999_000))
        assert first != second
        assert receipt.same_lease(first, second)
        assert receipt.same_lease(second, drawn)
        assert not receipt.same_lease(first, drawn[:11] + b"x" + drawn[12:])
        assert not receipt.same_lease(b"", drawn)

    def test_a_derived_value_depends_on_every_part(self) -> None:
        parts = ["key", "queue", "attempt", "message"]
        derived = {derive(b"s", *parts)}
        for place in range(4):
            derived.add(derive(b"s", *parts[:place], "x", *parts[place + 1 :]))
        derived.add(derive(b"t", *parts))
        assert len(derived) == 6
        assert {len(each) for each in derived} == {32}

    def test_a_derived_value_stays_the_same_over_releases(self) -> None:
        # Made with: printf 'a\nb' | openssl dgst -sha256 -hmac s
        assert derive(b"s", "a", "b")[:16].hex() == "49b7b706a65190013326a02a3c3f2334"


def test_messages_survive_packing_and_are_deflated_if_smaller() -> None:
    plain = [Message(body="x", attributes={"a": b"\0", "b": ""}, tags=("t",), group="g")]
    long = [Message(body="ab" * 5_000), Message(body=b"\xff\0")]

    assert unpack(pack(plain)) == plain
    assert unpack(pack(long)) == long
    assert len(pack(long)) < 200
    noise = random.Random(4).randbytes(5_000)
    assert len(pack([Message(body=noise)])) < 5_020
