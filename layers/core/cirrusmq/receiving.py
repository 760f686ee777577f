"""Receiving: looking at the partitions until something can be returned, or the wait is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta, UnsetType

from cirrusmq import limits
from cirrusmq.attempt import check_attempt
from cirrusmq.claims import Claim, NonceOf
from cirrusmq.core import Core
from cirrusmq.errors import InvalidParameter, Unavailable
from cirrusmq.heads import Wanted, take_from_partition
from cirrusmq.message import Message, show
from cirrusmq.ordered_heads import take_from_groups
from cirrusmq.parcel import Parcel
from cirrusmq.receipt import NONCE_BYTES, attempt_nonce
from cirrusmq.repeats import held_from_attempt
from cirrusmq.source import Source
from cirrusmq.timestamps import format_time
from cirrusmq.unclaiming import read_claimed

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0


class ReceiveRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a receive."""

    max: Annotated[int, Meta(ge=1, le=16, description="an integer from 1 to 16")] = 1
    wait_seconds: (
        Annotated[float, Meta(ge=0, le=30, description="a number from 0 to 30 seconds")] | UnsetType
    ) = msgspec.UNSET
    visibility_timeout_seconds: (
        Annotated[int, Meta(ge=1, le=43_200, description="an integer from 1 to 43,200 seconds")]
        | UnsetType
    ) = msgspec.UNSET
    receiver: str | UnsetType = msgspec.UNSET
    attempt: str | UnsetType = msgspec.UNSET
    repeat: bool = False


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A message that its receiver now holds."""

    parcel: Parcel
    place: int
    receipt: str
    message: Message

    def show(self) -> dict[str, Any]:
        """The message as the answer has it."""
        return show_received(self.parcel, self.place, self.message) | {"receipt": self.receipt}


def show_received(parcel: Parcel, place: int, message: Message) -> dict[str, Any]:
    """A message and its state, without a receipt."""
    shown = show(message)
    shown |= {
        "id": parcel.message_id(place),
        "receive_count": parcel.receives[place],
        "sent_at": format_time(parcel.sent_ms),
        "visible_at": format_time(parcel.visible_ms[place]),
        "expires_at": format_time(parcel.expires_ms),
    }
    if parcel.first_received_ms[place]:
        shown["first_received_at"] = format_time(parcel.first_received_ms[place])
    if parcel.dead_letter:
        shown["dead_letter"] = {
            **parcel.dead_letter,
            "dead_at": format_time(parcel.dead_letter["dead_at"]),
        }
    return shown


def receive(
    core: Core,
    find: Callable[[], Source],
    key_id: str,
    request: ReceiveRequest,
    most_seconds: float,
) -> list[Received]:
    """Take up to `max` messages; an empty list when the wait ends with none.

    `find` answers the source as it is now: what purges or deletes it during the wait holds from
    its answer on. `most_seconds` is what is left of the call's own time; a longer wait is cut to
    it.
    """
    source = find()
    if request.repeat and isinstance(request.attempt, UnsetType):
        raise InvalidParameter("repeat", "needs the attempt of the receive that it repeats")
    nonce_of = _nonce_of(core, source, key_id, request)
    if request.repeat:
        held = held_from_attempt(core, source, nonce_of)
        if held:
            return _with_contents(core, source, held[: request.max])
    wait = request.wait_seconds
    wait_seconds = source.receive_wait_seconds if isinstance(wait, UnsetType) else wait
    deadline_ms = core.now_ms() + int(min(wait_seconds, most_seconds) * 1000)
    timeout = request.visibility_timeout_seconds
    wanted = Wanted(
        most=request.max,
        timeout_seconds=None if isinstance(timeout, UnsetType) else timeout,
        nonce_of=nonce_of,
        answer_bytes=limits.ANSWER_BYTES,
    )
    pause_seconds = FIRST_PAUSE_SECONDS
    while True:
        received = _look_once(core, source, wanted)
        left_seconds = (deadline_ms - core.now_ms()) / 1000
        if received or left_seconds <= 0:
            return received
        core.clock.sleep(min(pause_seconds, left_seconds))
        pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
        before, source = source, find()
        if source.id != before.id:
            return []  # another one by that name: the call was for the one that is deleted


def _look_once(core: Core, source: Source, wanted: Wanted) -> list[Received]:
    """Look at every partition, from a random one on, until one of them gives something.

    Raises Unavailable where the store refused in one of them and no other one gave anything.
    """
    take = take_from_groups if source.ordered else take_from_partition
    partitions = list(range(source.partitions))
    core.random.shuffle(partitions)
    refused: Unavailable | None = None
    for partition in partitions:
        try:
            claims = take(core, source, partition, wanted)
            received = _with_contents(core, source, claims)
        except Unavailable as error:
            refused = error
            continue
        if received:
            return received
    if refused is not None:
        raise refused
    return []


def _with_contents(core: Core, source: Source, claims: list[Claim]) -> list[Received]:
    """The claimed messages; those whose content cannot be read now are not among them."""
    return [
        Received(
            parcel=claim.parcel,
            place=place,
            receipt=claim.receipt(place),
            message=messages[place],
        )
        for claim, messages in zip(claims, read_claimed(core, source, claims), strict=True)
        for place in claim.places
        if place in messages
    ]


def _nonce_of(core: Core, source: Source, key_id: str, request: ReceiveRequest) -> NonceOf:
    if isinstance(request.attempt, UnsetType):
        return lambda parcel, place, count: core.random.getrandbits(8 * NONCE_BYTES).to_bytes(
            NONCE_BYTES, "big"
        )
    check_attempt(request.attempt, core.now_ms(), core.clock.scale)
    attempt = request.attempt

    def derived(parcel: Parcel, place: int, receive_count: int) -> bytes:
        message = f"{parcel.sort_key}#{place}#{receive_count}"
        return attempt_nonce(core.secret(), key_id, source.id, attempt, message)

    return derived
