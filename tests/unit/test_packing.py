"""Packing by size: thoroughly what is small, fast what is large, and not at all what is noise."""

from __future__ import annotations

import json
import random
import zlib

import pytest

from cirrusmq.base.errors import MessageTooLarge
from cirrusmq.base.limits import ANSWER_BYTES, CALLED_BYTES, GZIPPED_ANSWER_BYTES
from cirrusmq.model.message import (
    Message,
    check_answer_size,
    check_event_size,
    compress,
    decompress,
    gzipped,
    pack,
    unpack,
)

MAX = 4_194_304
_chance = random.Random(7)
ALL_OF_ASCII = _chance.randbytes(MAX).translate(bytes(code % 128 for code in range(256))).decode()


def rows(size: int) -> bytes:
    made = json.dumps([{"row": number, "state": "done"} for number in range(size // 20)])
    return made[:size].encode()


@pytest.mark.parametrize("size", [1, 100, 7_000, 60_000, 66_560, 66_561, 70_000, 1_000_000, MAX])
@pytest.mark.parametrize("kind", [rows, _chance.randbytes])
def test_compressed_bytes_come_back(kind: object, size: int) -> None:
    plain = kind(size)  # type: ignore[operator]
    packed = compress(plain)
    assert decompress(packed) == plain
    assert len(packed) <= len(plain) + 1
    if kind is rows and size > 1_000:
        assert len(packed) < len(plain) / 2


def test_a_body_of_64_kb_is_packed_as_thoroughly_as_a_small_one() -> None:
    body = rows(65_536).decode()
    attributes = {"name": "value" * 200}
    message = Message(body=body, attributes=attributes)
    plain = decompress(pack([message]))
    assert len(pack([message])) == 1 + len(zlib.compress(plain, 6))
    assert unpack(pack([message])) == [message]


def test_a_large_one_is_packed_fast() -> None:
    plain = rows(200_000)
    assert compress(plain) == b"\1" + zlib.compress(plain, 1)


def test_rows_behind_noise_are_packed_all_the_same() -> None:
    plain = _chance.randbytes(40_000) + rows(200_000)
    assert len(compress(plain)) < 120_000


def test_noise_is_kept_as_it_is() -> None:
    plain = _chance.randbytes(200_000)
    assert compress(plain) == b"\0" + plain


@pytest.mark.long
def test_an_answer_too_large_after_the_fast_way_is_gzipped_once_more() -> None:
    shown = json.dumps(ALL_OF_ASCII).encode()
    fast = gzipped(shown, len(shown))
    assert len(fast) > ANSWER_BYTES > GZIPPED_ANSWER_BYTES > len(gzipped(shown, ANSWER_BYTES))
    for each in (fast, gzipped(shown, ANSWER_BYTES)):
        assert zlib.decompress(each, 31) == shown


class TestWhatFits:
    @pytest.mark.parametrize("body", [_chance.randbytes(MAX), "x" * MAX, '"' * MAX])
    def test_any_bytes_and_most_texts_fit_into_an_answer(self, body: str | bytes) -> None:
        check_answer_size(Message(body=body), "messages[0]")

    def test_bytes_are_not_even_tried_since_they_always_fit(self) -> None:
        import base64

        shown = base64.b64encode(_chance.randbytes(MAX))
        assert len(gzipped(shown, len(shown))) < GZIPPED_ANSWER_BYTES - 200_000

    def test_a_poorly_compressible_text_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        check_answer_size(Message(body=ALL_OF_ASCII), "messages[0]")
        monkeypatch.setattr("cirrusmq.base.limits.GZIPPED_ANSWER_BYTES", 730_000)
        with pytest.raises(MessageTooLarge, match="at most 730,000") as raised:
            check_answer_size(Message(body=ALL_OF_ASCII[:700_000]), "messages[3]")
        assert raised.value.parameter == "messages[3].body"

    def test_its_attributes_count_with_a_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("cirrusmq.base.limits.GZIPPED_ANSWER_BYTES", 800_000)
        text, noise = ALL_OF_ASCII[:700_000], _chance.randbytes(262_000)
        check_answer_size(Message(body=text), "messages[0]")
        with pytest.raises(MessageTooLarge, match="at most 800,000"):
            check_answer_size(Message(body=text, attributes={"a": noise}), "messages[3]")

    def test_an_event_is_measured_as_json(self) -> None:
        check_event_size(Message(body=_chance.randbytes(MAX)), "messages[0]")
        check_event_size(Message(body="x" * MAX), "messages[0]")
        room = (CALLED_BYTES - 4_000) // 6
        check_event_size(Message(body="\x01" * room), "messages[0]")
        with pytest.raises(MessageTooLarge) as refused:
            check_event_size(Message(body="\x01" * (room + 1)), "messages[3]")
        assert refused.value.parameter == "messages[3].body"
        assert refused.value.detail == (
            "messages[3].body takes 6,200,002 bytes in the event of the queue's function,"
            " which has at most 6,200,000"
        )
        # Two bytes in JSON each: an event that is full to its last byte.
        check_event_size(Message(body='"' * ((CALLED_BYTES - 4_000) // 2)), "messages[0]")
