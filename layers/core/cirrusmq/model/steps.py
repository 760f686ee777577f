"""The steps that a stored message may make: the table beside `model.transitions`, and its check.

A write of a parcel's item is lawful if each message of it either stays as it is or makes one step
of `STEPS`, and nothing else of the parcel changes:

    before   v = [5, 35]  k = [-, B]  r = [0, 1]
    after    v = [30, 0]  k = [A, B]  r = [1, 1]      the first: claimed, the second: deleted

The table judges writes and makes none: conditions of the store are written where the writes are.
Tests judge every write that they make, and the meter counts unlawful writes of an account, of which
there must be 0. Facts that a state does not show, such as whether a message arrived in its new
parcel, are not judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias

from cirrusmq.model.parcel import CANCELLED, DELETED, DROPPED, GONE, MOVED, Parcel

State: TypeAlias = Literal["free", "held", "deleted", "gone", "moved", "dropped", "cancelled"]
_MARKS: dict[int, State] = {
    DELETED: "deleted",
    GONE: "gone",
    MOVED: "moved",
    DROPPED: "dropped",
    CANCELLED: "cancelled",
}
_LISTS = ("nonces", "receives", "first_received_ms", "sizes")
_FIXED = (
    *("source_id", "partition", "sort_key", "parcel_id", "sent_ms", "expires_ms", "sizes"),
    *("positions", "visibility_seconds", "log", "object_days", "own_group", "moved_from"),
    *("moved_ms", "dead_letter", "fanned_out", "invokes", "content", "answer_percent"),
)
"""Fields that no write of a stored parcel changes."""


class StoredMessage(NamedTuple):
    """One message as its parcel's item has it."""

    state: State
    visible_ms: int
    nonce: bytes
    receives: int
    first_received_ms: int
    wait_ms: int
    untried: int
    history: bytes
    expires_ms: int


Guard: TypeAlias = Callable[[StoredMessage, StoredMessage, int], bool]
"""(before, after, the latest time by any clock at which it was written) -> whether it holds."""


class MessageStep(NamedTuple):
    """A step: its function in `model.transitions`, and when it is lawful."""

    name: str
    before: tuple[State, ...]
    after: tuple[State, ...]
    received: int | None
    """How the receive count changes; None means to 0."""
    by: tuple[str, ...]
    """The packages of the core whose code makes it."""
    guard: Guard


_LIVE: tuple[State, ...] = ("free", "held")


def _always(before: StoredMessage, after: StoredMessage, latest_ms: int) -> bool:
    return True


def _same_nonce(before: StoredMessage, after: StoredMessage, latest_ms: int) -> bool:
    return before.nonce == after.nonce


def _receivable(before: StoredMessage, after: StoredMessage, latest_ms: int) -> bool:
    """Returns True if it was visible, its wait over, and its new lease has another nonce."""
    ready_ms = before.visible_ms + before.wait_ms
    return ready_ms <= latest_ms and after.nonce != before.nonce


def _never_received(before: StoredMessage, after: StoredMessage, latest_ms: int) -> bool:
    return not before.receives and _same_nonce(before, after, latest_ms)


def _one_later(before: StoredMessage, after: StoredMessage, latest_ms: int) -> bool:
    return after._replace(visible_ms=after.visible_ms - 1) == before


def _lease_kept(before: StoredMessage, after: StoredMessage, latest_ms: int) -> bool:
    return after._replace(visible_ms=before.visible_ms) == before


def _admitted(before: StoredMessage, after: StoredMessage, latest_ms: int) -> bool:
    """Returns True if it waited for its group, or another receiver made it visible before."""
    waited = before.visible_ms == before.expires_ms
    visible = after.visible_ms <= latest_ms
    return visible and not before.receives and (waited or before.visible_ms <= latest_ms)


def _to_its_end(before: StoredMessage, after: StoredMessage, latest_ms: int) -> bool:
    return after.visible_ms == after.expires_ms


def _posted(before: StoredMessage, after: StoredMessage, latest_ms: int) -> bool:
    """Returns True for a post: it leaves a history, and no receipt."""
    return _same_nonce(before, after, latest_ms) and after.history != before.history


def _hidden(before: StoredMessage, after: StoredMessage, latest_ms: int) -> bool:
    return before.visible_ms == after.visible_ms


STEPS = (
    MessageStep("claimed", _LIVE, ("held",), 1, ("receiving",), _receivable),
    MessageStep("unread", ("held",), ("free",), -1, ("receiving",), _hidden),
    MessageStep("unclaimed", ("held",), _LIVE, -1, ("receiving",), _always),
    MessageStep("preceded", _LIVE, _LIVE, 0, ("lifecycle",), _one_later),
    MessageStep("held", ("held",), ("held",), 0, ("settlement",), _lease_kept),
    MessageStep("given_back", ("held",), ("free",), 0, ("settlement",), _always),
    MessageStep("deleted", ("held",), ("deleted",), 0, ("settlement",), _same_nonce),
    MessageStep("moved", _LIVE, ("gone", "moved"), 0, ("lifecycle",), _same_nonce),
    MessageStep("dropped", _LIVE, ("dropped",), 0, ("lifecycle", "push"), _same_nonce),
    MessageStep(
        "cancelled", ("free",), ("cancelled",), 0, ("receiving", "sending"), _never_received
    ),
    MessageStep("reopened", ("deleted",), ("free",), None, ("operations",), _always),
    MessageStep("kept", ("free",), ("free",), 0, ("push",), _to_its_end),
    MessageStep("admitted", ("free",), ("free",), 0, ("lifecycle",), _admitted),
    MessageStep("delivered", ("free",), ("deleted",), 1, ("push",), _posted),
    MessageStep("failed", ("free",), ("free",), 1, ("push",), _posted),
)
"""Every step, in the order in which they are looked through: the first that fits is the one."""


def stored(parcel: Parcel, index: int) -> StoredMessage:
    """Returns the message at `index` as the item has it."""
    visible_ms, nonce = parcel.visible_ms[index], parcel.nonces[index]
    return StoredMessage(
        state=_MARKS.get(visible_ms) or ("held" if nonce else "free"),
        visible_ms=visible_ms,
        nonce=nonce,
        receives=parcel.receives[index],
        first_received_ms=parcel.first_received_ms[index],
        wait_ms=parcel.wait_ms(index),
        untried=parcel.untried.get(index, 0),
        history=parcel.histories.get(index, b""),
        expires_ms=parcel.expires_ms,
    )


def step_of(before: StoredMessage, after: StoredMessage, latest_ms: int) -> str | None:
    """Returns the name of the step that a message made; "" for none, None if no step fits.

    latest_ms: the latest time at which it was written, by any clock.
    """
    if before == after:
        return ""
    received = after.receives - before.receives
    for step in STEPS:
        if before.state not in step.before or after.state not in step.after:
            continue
        if received != step.received if step.received is not None else after.receives:
            continue
        if step.guard(before, after, latest_ms):
            return step.name
    return None


def unlawful(before: Parcel | None, after: Parcel | None, latest_ms: int) -> str | None:
    """Returns why a write of a parcel's item is unlawful, or None if it is lawful.

    before, after: None if the item does not exist before, or afterwards.
    latest_ms: as in `step_of`.
    """
    return next(_faults(before, after, latest_ms), None)


def _faults(before: Parcel | None, after: Parcel | None, latest_ms: int) -> Iterator[str]:
    if after is None:
        return
    yield from _blemishes(after)
    if before is None or before.sent_ms != after.sent_ms:
        # New, or put over one that was purged, by the same send that was repeated.
        if before is not None and before.sent_ms > after.sent_ms:
            yield "an older parcel was put over it"
        return
    for name in _FIXED:
        if getattr(before, name) != getattr(after, name):
            yield f"{name} changed"
    for index in range(min(before.count, after.count)):
        was, now = stored(before, index), stored(after, index)
        if step_of(was, now, latest_ms) is None:
            yield f"the message at {index} went from {was.state} to {now.state}, as no step does"


def _blemishes(parcel: Parcel) -> Iterator[str]:
    """Yields the faults of a parcel that no parcel may have, after any write."""
    count = parcel.count
    for name in _LISTS:
        if len(getattr(parcel, name)) != count:
            yield f"{name} has not one value for each of {count} messages"
            return
    if parcel.waits_ms and len(parcel.waits_ms) != count:
        yield f"waits_ms has not one value for each of {count} messages"
        return
    for index in range(count):
        visible_ms = parcel.visible_ms[index]
        if visible_ms < CANCELLED:
            yield f"the message at {index} has a mark that is none"
        if visible_ms > parcel.expires_ms + 1:  # `preceded` may add one
            yield f"the message at {index} is hidden beyond its expiry"
        if parcel.receives[index] < 0 or parcel.untried.get(index, 0) > parcel.receives[index]:
            yield f"the message at {index} was received less than 0 times"
