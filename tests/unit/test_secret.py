"""The deployment's secret: its generations, and how an environment learns of them."""

from __future__ import annotations

import msgspec
import pytest

from cirrusmq.base.errors import InUse, Unavailable
from cirrusmq.runtime.secret import (
    KEPT_MS,
    READ_AGAIN_MS,
    USED_AFTER_MS,
    Generations,
    Secret,
    turned_over,
    written,
)
from cirrusmq_local.testing.clock import ManualClock

OLD, NEW, NEWEST = (bytes([number]) * 32 for number in (1, 2, 3))
DOCUMENT = written(Generations(key=OLD.hex()))


class Kept:
    """A document that is read; `text` None cannot be."""

    def __init__(self) -> None:
        self.text: str | None = DOCUMENT
        self.reads = 0

    def __call__(self) -> str:
        self.reads += 1
        if self.text is None:
            raise OSError
        return self.text


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def secret(clock: ManualClock, kept: Kept) -> Secret:
    return Secret(clock, kept)


def test_the_document_generated_by_cloudformation_is_read() -> None:
    """An empty template, and 64 hexadecimal digits under `key`."""
    held = msgspec.json.decode(f'{{"key": "{OLD.hex()}"}}', type=Generations)
    assert (held.key_bytes, held.from_ms, held.previous) == (OLD, 0, None)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"key": "ab"}', f'{{"key": "{"g" * 64}"}}', f'{{"key": "{"a" * 65}"}}']
)
def test_another_document_is_none(clock: ManualClock, text: str) -> None:
    with pytest.raises(Unavailable):
        Secret(clock, lambda: text).signing_key()


def test_a_turn_over_keeps_the_newest_generation_and_drops_the_one_before() -> None:
    second = turned_over(DOCUMENT, 1_000, NEW)
    third = turned_over(second, 1_000 + USED_AFTER_MS + KEPT_MS, NEWEST)
    held = msgspec.json.decode(third, type=Generations)
    assert held.key_bytes == NEWEST
    assert held.previous is not None
    assert (held.previous.key_bytes, held.previous.from_ms) == (NEW, 1_000 + USED_AFTER_MS)


def test_the_next_turn_over_waits_until_a_generation_has_signed_for_a_day() -> None:
    second = turned_over(DOCUMENT, 1_000, NEW)
    with pytest.raises(InUse):
        turned_over(second, 1_000 + USED_AFTER_MS + KEPT_MS - 1, NEWEST)


def test_it_is_read_once_in_ten_minutes(secret: Secret, kept: Kept, clock: ManualClock) -> None:
    for _ in range(100):
        assert secret.signing_key() == OLD
        clock.pass_seconds(5.9)
    assert kept.reads == 1
    clock.pass_seconds(10)
    secret.signing_key()
    assert kept.reads == 2


def test_a_new_generation_is_known_before_it_signs(
    secret: Secret, kept: Kept, clock: ManualClock
) -> None:
    """Two environments, one of which read just before: neither meets what it does not know."""
    secret.signing_key()
    kept.text = turned_over(DOCUMENT, clock.now_ms(), NEW)
    other = Secret(clock, kept)
    assert READ_AGAIN_MS < USED_AFTER_MS
    for _ in range(USED_AFTER_MS // 1_000):
        assert (secret.signing_key(), other.signing_key()) == (OLD, OLD)
        clock.pass_seconds(1)
    for each in (secret, other):
        assert each.signing_key() == NEW
        assert each.accepted_keys() == [NEW, OLD]


def test_the_key_for_a_moment_is_the_same_later(
    secret: Secret, kept: Kept, clock: ManualClock
) -> None:
    begun_ms = clock.now_ms()
    kept.text = turned_over(DOCUMENT, begun_ms - USED_AFTER_MS + 1_000, NEW)
    assert secret.key_at(begun_ms) == OLD
    clock.pass_seconds(60)
    assert secret.key_at(begun_ms) == OLD
    assert secret.key_at(begun_ms + 1_000) == NEW


def test_both_are_accepted_as_soon_as_they_are_known(
    secret: Secret, kept: Kept, clock: ManualClock
) -> None:
    kept.text = turned_over(DOCUMENT, clock.now_ms(), NEW)
    assert secret.accepted_keys() == [OLD, NEW]


def test_a_failed_reading_changes_nothing_and_is_tried_again_in_a_minute(
    secret: Secret, kept: Kept, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    secret.signing_key()
    kept.text = None
    clock.pass_seconds(READ_AGAIN_MS / 1_000)
    for _ in range(10):
        assert secret.signing_key() == OLD
    assert kept.reads == 2
    kept.text = turned_over(DOCUMENT, 0, NEW)
    clock.pass_seconds(60)
    assert secret.signing_key() == NEW
    assert "cannot be read: OSError" in caplog.text


def test_without_any_reading_calls_are_told_to_come_again(secret: Secret, kept: Kept) -> None:
    kept.text = None
    with pytest.raises(Unavailable):
        secret.signing_key()
    kept.text = DOCUMENT
    assert secret.signing_key() == OLD


def test_an_unreadable_document_is_not_in_the_log(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Unavailable):
        Secret(clock, lambda: f'{{"key": "{OLD.hex()}", "more": 1}}').signing_key()
    assert OLD.hex() not in caplog.text
