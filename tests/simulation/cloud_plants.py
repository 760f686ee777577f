"""Faults that do harm only where the cloud differs from one machine: clocks, caches, throttling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from tests.simulation.plants import plant

from cirrusmq import claims, heads, ordered_heads, publishing, purging, sending, ulid, unclaiming
from cirrusmq.core import Core


@plant("plain", "rewinding", "receivers", rare=True)
def nobody_waits_for_the_clocks_of_others(patch: pytest.MonkeyPatch) -> None:
    """What is sent after a purge, by a clock that is behind, lies below its floor."""
    patch.setattr(Core, "wait_past", lambda *_: None)


@plant("plain", "rewinding", "receivers", rare=True)
def a_purge_removes_whatever_has_the_key(patch: pytest.MonkeyPatch) -> None:
    """A send that is repeated after the purge lies under the key that its steps have read."""

    def remove(core: Any, place: Any, floor_ms: int) -> None:
        core.store.write("DeleteItem", {"TableName": core.tables.messages, "Key": place})

    patch.setattr(purging, "_remove", remove)


@plant("storm")
def one_refused_claim_fails_the_whole_receive(patch: pytest.MonkeyPatch) -> None:
    """The others stay claimed, and nobody is told of them."""
    patch.setattr(heads, "try_claim", claims.claim)
    patch.setattr(ordered_heads, "try_claim", claims.claim)


@plant("storm")
def what_cannot_be_read_stays_claimed(patch: pytest.MonkeyPatch) -> None:
    """A receive that is refused the bodies says 503 and leaves its claims behind."""
    patch.setattr(unclaiming, "_undo", lambda *_: None)


@plant("plain", "retries", "pull")
def a_send_that_is_repeated_gets_another_id(patch: pytest.MonkeyPatch) -> None:
    """The id comes from chance, not from the attempt: what answered 503 may be stored twice."""

    drawn = itertools.count(1)

    def ids(account: str, target: str, request: object, begun_ms: int) -> Iterator[str]:
        while True:
            yield ulid.encode(begun_ms, next(drawn).to_bytes(ulid.ENTROPY_BYTES, "big"))

    patch.setattr(sending, "repeatable_send_ids", ids)
    patch.setattr(publishing, "repeatable_send_ids", ids)
