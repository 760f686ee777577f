"""What is kept of a URL's answer to a failed post: its first bytes, and headers without secrets."""

from __future__ import annotations

import msgspec
import pytest

from cirrusmq.model.answer_sample import BODY_BYTES, HEADERS_BYTES, AnswerSample, sample_of


def kept(*lines: bytes) -> tuple[tuple[str, str], ...]:
    """The headers that are kept of these lines."""
    return sample_of(lines, b"").headers


def test_headers_are_kept_in_order_without_blanks_around_them() -> None:
    assert kept(b"X-A: b\r\n", b"server :\t s \r\n", b"Date: 11:06:40\n", b"Empty:\r\n") == (
        ("X-A", "b"),
        ("server", "s"),
        ("Date", "11:06:40"),
        ("Empty", ""),
    )
    assert kept(b"Name: caf\xe9\r\n", b"End: aX\r\n") == (("Name", "café"), ("End", "aX"))


@pytest.mark.parametrize(
    "line",
    [
        b" goes: on\r\n",
        b"\tgoes: on\r\n",
        b"no colon\r\n",
        b"\r\n",
        *(
            f"X-{word}-1: x\r\n".encode()
            for word in (
                *("Authorization", "COOKIE", "Token", "secret", "api-key", "Session-Id"),
                *("Password", "credentials"),
            )
        ),
    ],
)
def test_secrets_and_non_header_lines_are_left_out(line: bytes) -> None:
    assert kept(b"A: 1\r\n", line, b"B: 2\r\n") == (("A", "1"), ("B", "2"))


@pytest.mark.parametrize(("more", "is_kept"), [(0, True), (1, False)])
def test_headers_have_1024_bytes_as_they_are_kept(more: int, is_kept: bool) -> None:
    first = ("A", "\x01" * 10)
    left = HEADERS_BYTES - len(msgspec.json.encode(first)) - len(msgspec.json.encode(("B", "")))
    last = ("B", "b" * (left + more))
    lines = [f"{name}: {value}\r\n".encode() for name, value in (first, last, ("C", "3"))]

    assert kept(*lines) == ((first, last) if is_kept else (first,))


@pytest.mark.parametrize(("size", "cut"), [(0, False), (BODY_BYTES, False), (BODY_BYTES + 1, True)])
def test_a_body_is_cut_after_1024_bytes(size: int, cut: bool) -> None:
    body = b"ab\xff" * 500
    assert sample_of([], body[:size]) == AnswerSample(body=body[: min(size, 1_024)], cut=cut)
