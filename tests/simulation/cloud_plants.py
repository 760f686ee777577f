"""Faults that do harm only where the cloud differs from one machine: clocks, caches, throttling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.plants import plant

from cirrusmq.base import ulid
from cirrusmq.base.errors import Unavailable
from cirrusmq.fanout.stream_batch import _Batch
from cirrusmq.operations import purge
from cirrusmq.publishing import publish
from cirrusmq.receiving import claim, ordered, release, unordered
from cirrusmq.receiving.heads import watermark
from cirrusmq.runtime.core import Core
from cirrusmq.sending import deduplication, send
from cirrusmq_local.judging.scenario import PURGED


@plant("plain", "rewinding", "receivers", rare=True, found_by=9)
def nobody_waits_for_the_clocks_of_others(patch: pytest.MonkeyPatch) -> None:
    """A message that is sent after a purge, by a clock that is behind, is below its floor."""
    patch.setattr(Core, "wait_past", lambda *_: None)


@plant(PURGED, rare=True, found_by=10_142)
def a_purge_removes_whatever_has_the_key(patch: pytest.MonkeyPatch) -> None:
    """A send that is repeated after the purge has the key that its steps have read."""

    def remove(core: Any, place: Any, floor_ms: int) -> None:
        core.store.write("DeleteItem", {"TableName": core.tables.messages, "Key": place})

    patch.setattr(purge, "_remove", remove)


@plant(PURGED, rare=True, found_by=1_432)
def a_purged_message_keeps_its_deduplication_id(patch: pytest.MonkeyPatch) -> None:
    """A message that is sent again after a purge is answered with the purged one's id."""
    in_force = deduplication._unless_in_force

    def as_without_purges(item: Any, begun_ms: int, purged_ms: int) -> dict[str, Any]:
        return in_force(item, begun_ms, 0)

    patch.setattr(deduplication, "_unless_in_force", as_without_purges)


@plant("storm", rare=True, found_by=957)
def one_refused_claim_fails_the_whole_receive(patch: pytest.MonkeyPatch) -> None:
    """The others stay claimed, and no client is told of them."""

    def raising(*given: Any) -> Any:
        outcome = claim.claim(*given)
        if isinstance(outcome, Unavailable):
            raise outcome
        return outcome

    patch.setattr(unordered, "claim", raising)
    patch.setattr(ordered, "claim", raising)


@plant("storm", found_by=52)
def what_cannot_be_read_stays_claimed(patch: pytest.MonkeyPatch) -> None:
    """A receive that is refused the bodies says 503 and leaves its claims behind."""
    patch.setattr(release, "_undo", lambda *_: None)


@plant("plain", "retries", "pull", found_by=60)
def a_send_that_is_repeated_gets_another_id(patch: pytest.MonkeyPatch) -> None:
    """The id is random, not made of the attempt: a send that got a 503 may be stored twice."""

    drawn = itertools.count(1)

    def ids(account: str, target: str, request: object, begun_ms: int) -> Iterator[str]:
        while True:
            yield ulid.encode(begun_ms, next(drawn).to_bytes(ulid.ENTROPY_BYTES, "big"))

    patch.setattr(send, "repeatable_send_ids", ids)
    patch.setattr(publish, "repeatable_send_ids", ids)


class _Nobody(set[str]):
    """A set that forgets every id that is put into it."""

    def __contains__(self, _: object) -> bool:
        return False


@plant("ordered receivers", "ordered pull", "ordered copies", rare=True, found_by=233)
def fan_out_goes_on_after_a_share_that_failed(patch: pytest.MonkeyPatch) -> None:
    """A reader with an order gets its next message, though the one before it is put aside."""
    make = _Batch.__init__

    def forgetful(made: Any, *given: Any) -> None:
        make(made, *given)
        made._aside = _Nobody()

    patch.setattr(_Batch, "__init__", forgetful)


@plant("ordered receivers", "ordered pull", "ordered copies", rare=True, found_by=2_592)
def what_lies_aside_is_passed(patch: pytest.MonkeyPatch) -> None:
    """A later batch does not look whether something of its reader was put aside before."""
    patch.setattr(_Batch, "_is_marked", lambda *_: False)


@plant("crowd", rare=True, found_by=519)
def a_mark_covers_what_is_not_there_yet(patch: pytest.MonkeyPatch) -> None:
    """Behind what a pass has read, the mark of a head hides what is written in the next seconds."""
    after_pass = watermark.after_pass

    def wide(mark: Any, start: str, stretch: Any) -> Any:
        made = after_pass(mark, start, stretch)
        return made and replace(made, before=f"{stretch.begun_ms + 10_000:013d}")

    patch.setattr(watermark, "after_pass", wide)
