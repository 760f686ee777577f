"""Faults that do harm only where messages are in objects of the bucket."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.plants import plant

from cirrusmq.base.errors import Unavailable
from cirrusmq.lifecycle import rekey, transfer
from cirrusmq.model import transitions
from cirrusmq.model.parcel import DELETED
from cirrusmq.queues.wake_ups.announce import wake_receivers
from cirrusmq.receiving import release
from cirrusmq.sending import send
from cirrusmq.storage.bodies import write
from cirrusmq.storage.bodies.objects import put_object
from cirrusmq_local.judging.scenario import OBJECTS


@plant(OBJECTS, found_by=93)
def parcels_are_written_before_their_object(patch: pytest.MonkeyPatch) -> None:
    """A crash between the two leaves messages without a body."""
    put, place, wake = put_object, write.place_messages, wake_receivers
    sends: set[str] = set()
    waiting: dict[str, Callable[[], None]] = {}

    def place_later(core: Any, send_id: str, *of: Any) -> write.Placed:
        sends.add(send_id)
        return place(core, send_id, *of)

    def put_later(core: Any, send_id: str, *of: Any) -> None:
        if send_id in sends:
            waiting[send_id] = lambda: put(core, send_id, *of)
        else:
            put(core, send_id, *of)

    def put_and_wake(core: Any, queue: Any, parcels: Any, put_ms: int) -> None:
        listed = list(parcels)
        for parcel in listed:
            with contextlib.suppress(Unavailable, KeyError):
                waiting.pop(parcel.send_id)()
        wake(core, queue, listed, put_ms)

    patch.setattr(write, "put_object", put_later)
    patch.setattr(send, "place_messages", place_later)
    patch.setattr(send, "wake_receivers", put_and_wake)


@plant(OBJECTS, found_by=23)
def what_cannot_be_read_is_deleted(patch: pytest.MonkeyPatch) -> None:
    """A message whose object the bucket refuses is taken for one that is gone."""
    unclaimed = transitions.unclaimed
    patch.setattr(release, "unclaimed", lambda *args: replace(unclaimed(*args), visible_ms=DELETED))


@plant(OBJECTS, found_by=471)
def dead_letters_do_not_renew_their_object(patch: pytest.MonkeyPatch) -> None:
    """A message that is moved or redriven keeps a class of life that it outlives."""
    patch.setattr(transfer, "keep_messages", lambda core, queue, send_id, days, *_: days)


@plant(OBJECTS, found_by=451)
def re_keyed_messages_forget_their_object(patch: pytest.MonkeyPatch) -> None:
    """A message that is given back is looked for in the log."""
    under_key = transitions.under_key
    patch.setattr(rekey, "under_key", lambda *args: replace(under_key(*args), object_days=0))
