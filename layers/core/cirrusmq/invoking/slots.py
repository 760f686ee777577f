"""Slots: how many workers call a queue's or a group's function with its messages at the same time.

They are the owner's, not the source's: a group that is rewound has another source at once, while
calls for the former one still run.

    former source     call ────────────────────────── ends
    rewind                   new source ── worker: no slot is free ── asks ── the holder scans

Each worker holds one of `max_concurrency` items for as long as a call of the function may take, so
the bound is exact also if a worker dies: its slot ends by its time. One further item, `wake`,
records that a worker found no free slot, when the newest alarm rings, and the function's breaker.

    worker   holds ── scans: nothing ──────── releases ── reads `wake`: asked ── holds, scans
    waker             finds no free slot ── asks ── finds none still: leaves

A waker that asks behind the worker's reading sees the free slot when it reads a second time.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from cirrusmq.invoking.function_breaker import FunctionBreaker, read_breaker
from cirrusmq.model.breaker import Circuit
from cirrusmq.model.invoke import Invoke
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, Item, key, number_in, set_request
from cirrusmq.storage import lease
from cirrusmq.storage.lease import Lease

MARGIN_SECONDS = 30
"""Seconds that a slot lasts beyond a call of the function, for settling its messages."""
SPARE_SECONDS = 5
"""Seconds of the margin that are left when a call begins."""
FRESH_SECONDS = 15
KEPT_MS = 86_400_000
_WAKE = "wake"
_TRIES = 4


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """A slot that a worker holds."""

    lease: Lease
    spare: int
    """How many other slots were free when it was taken."""
    invoke: Invoke
    """The bounds that it was taken under."""
    begun_ms: int
    """When the slot was last taken or renewed."""


class Slots(msgspec.Struct, frozen=True, kw_only=True):
    """An owner's slots as they were read. Times are in milliseconds since the epoch."""

    held: frozenset[int] = frozenset()
    """Numbers of the slots that workers hold."""
    asked_ms: int = 0
    """When a worker last found no free slot; 0 if none did since one scanned."""
    wake: Item = {}
    """The item `wake`."""

    def free(self, invoke: Invoke) -> list[int]:
        """Returns numbers of free slots; none while too many run, by an earlier bound."""
        if len(self.held) >= invoke.max_concurrency:
            return []
        return [number for number in range(invoke.max_concurrency) if number not in self.held]


def read(core: Core, owner_id: str) -> Slots:
    """Returns the slots of a queue or group now, strongly consistent."""
    held, wake = set(), Item()
    for item in core.store.query_all(core.tables.messages, _pk(owner_id)):
        if item["sk"]["S"] == _WAKE:
            wake = item
        elif int(item["held_until"]["N"]) >= core.lapsed_ms():
            held.add(int(item["sk"]["S"]))
    return Slots(
        held=frozenset(held),
        asked_ms=number_in(wake, "asked"),
        wake=wake,
    )


def wake_key(owner_id: str) -> tuple[str, str]:
    """Returns the key of the item `wake` of a queue or group."""
    return _pk(owner_id), _WAKE


def read_circuit(core: Core, owner_id: str) -> Circuit:
    """Returns the state of a function's breaker, for half a read unit."""
    item = core.store.get(core.tables.messages, *wake_key(owner_id), consistent=False)
    return read_breaker(item or {}).circuit


def take(
    core: Core, owner_id: str, invoke: Invoke, breaker: FunctionBreaker | None = None
) -> Slot | None:
    """Takes a free slot. Returns None if there is none, after asking its holders to scan again.

    breaker: of the function; it sees its state, and there is no slot while it waits.
    """
    slot = _take_free(core, owner_id, invoke, breaker)
    if slot is not None or (breaker is not None and breaker.waits(invoke)):
        return slot
    _set_wake(core, owner_id, "asked", core.now_ms())
    return _take_free(core, owner_id, invoke, breaker)


def renew(core: Core, slot: Slot, invoke: Invoke) -> Slot | None:
    """Holds a slot for one more call. Returns None if another worker has it by now.

    A hold of at most `FRESH_SECONDS` of age still outlives the leases of messages claimed now.
    """
    begun_ms = core.now_ms()
    fresh = begun_ms - slot.begun_ms <= FRESH_SECONDS * 1000 * core.clock.scale
    if fresh and slot.invoke == invoke:
        return slot
    if not lease.renew(core, slot.lease, hold_ms(core, invoke), kept_ms=KEPT_MS):
        return None
    return replace(slot, invoke=invoke, begun_ms=begun_ms)


def lease_exceeds_timeout(core: Core, slot: Slot) -> bool:
    """Returns True if a call that begins now is over before others may take the slot.

    slot      [ the function's timeout             + a margin ]
    claims      ── slow ──────────────────── the function runs ── beside the slot's next holder's
    """
    passed_ms = core.now_ms() - slot.begun_ms
    return passed_ms <= (MARGIN_SECONDS - SPARE_SECONDS) * 1000 * core.clock.scale


def release(core: Core, slot: Slot) -> None:
    """Releases a slot, unless another worker has it already."""
    lease.release(core, slot.lease, delete=True)


def release_all(core: Core, owner_id: str) -> None:
    """Releases every slot of a queue or group, whose workers have all ended."""
    for item in core.store.query_all(core.tables.messages, _pk(owner_id)):
        if item["sk"]["S"] != _WAKE:
            request = {
                "TableName": core.tables.messages,
                "Key": key(_pk(owner_id), item["sk"]["S"]),
            }
            core.store.write("DeleteItem", request)


def answer_asked(core: Core, owner_id: str, asked_ms: int) -> bool:
    """Takes a request to scan. Returns False if another worker took it."""
    request = {
        "TableName": core.tables.messages,
        "Key": key(_pk(owner_id), _WAKE),
        "UpdateExpression": "REMOVE asked",
        "ConditionExpression": "asked = :asked",
        "ExpressionAttributeValues": {":asked": {"N": str(asked_ms)}},
    }
    try:
        core.store.write("UpdateItem", request)
    except ConditionFailed as failed:
        return failed.repeated
    return True


def set_alarm(core: Core, owner_id: str, due_ms: int) -> bool:
    """Notes that an alarm rings at a time. Returns False if another one rings then, or earlier.

    An alarm that should have rung does not count: the worker that sets this one has scanned later.
    By the clock of the worker that set it, since a worker that was woken may scan early by its own:

        set by        12:00:00.0 rings ── wakes
        the worker    11:59:59.3 scans: nothing is ready before 12:00:00.0, and nobody else comes
    """
    condition = "attribute_not_exists(alarm) OR alarm > :alarm OR alarm <= :now"
    values = {":now": {"N": str(core.now_ms() + core.skew_ms)}}
    return _set_wake(core, owner_id, "alarm", due_ms, condition, values)


def _take_free(
    core: Core, owner_id: str, invoke: Invoke, breaker: FunctionBreaker | None
) -> Slot | None:
    for _ in range(_TRIES):
        found = read(core, owner_id)
        if breaker is not None:
            breaker.see(found.wake)
            if breaker.waits(invoke):
                return None
        held, free = found.held, found.free(invoke)
        if not free:
            return None
        begun_ms = core.now_ms()
        key = _pk(owner_id), f"{core.random.choice(free):04d}"
        taken = lease.take(core, key, hold_ms(core, invoke), kept_ms=KEPT_MS)
        if taken is not None:
            spare = invoke.max_concurrency - len(held) - 1
            return Slot(lease=taken, spare=spare, invoke=invoke, begun_ms=begun_ms)
    return None


def hold_ms(core: Core, invoke: Invoke) -> int:
    """Returns how long a slot is held from now on: calls take real seconds."""
    return int((invoke.timeout_seconds + MARGIN_SECONDS) * 1000 * core.clock.scale)


def _set_wake(
    core: Core,
    owner_id: str,
    name: str,
    moment_ms: int,
    condition: str = "",
    values: Item | None = None,
) -> bool:
    """Sets a time of the item `wake`, if the condition holds. Returns False if it does not."""
    expires_at = {"N": str((moment_ms + KEPT_MS) // 1000)}
    moment: Item = {name: {"N": str(moment_ms)}, "expires_at": expires_at}
    request = set_request(core.tables.messages, (_pk(owner_id), _WAKE), moment)
    request["ExpressionAttributeValues"] |= values or {}
    if condition:
        request["ConditionExpression"] = condition
    return core.store.try_write("UpdateItem", request)


def _pk(owner_id: str) -> str:
    return f"F#{owner_id}"
