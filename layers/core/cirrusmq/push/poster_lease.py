"""One poster for each subscription: who holds its schedule posts, and nobody else does.

    A: holds ── posts a window of messages, renews its hold each 10 s ── releases
    B:   told of a new message, finds A: leaves a sign ("look again from this key on") and goes

A post starts only while 17 s of the hold are left, so that a hold outlives every post begun under
it, also where its holder died: nothing is posted by two at once, and no message need be claimed.

No wake-up is lost. The sign is written on the condition that A still holds, and A releases on the
condition that there is no sign:

    fan-out puts m ── B: sign? A holds ──────> A: release? a sign: looks again, finds m
    fan-out puts m ──────────────────────────> A: releases ── B: sign? nobody holds: holds, finds m

Two numbers say which execution goes on. `starts` names executions; `generation` is that of the one
in charge. A holder that leaves something due earlier than anybody wakes counts `starts` up in its
release and starts that execution, which waits until then and takes charge when it first holds:

    #1, in charge, asleep until 14:00      a message fails, due 12:00:10: starts = 2, #2 is started
    #2 12:00:10 holds: generation = 2      #1 wakes, generation > 1: ends
    #2 could not be started:               #1 is still in charge, and the sweep finds what is due
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, Item
from cirrusmq.subscriptions import delivery_state
from cirrusmq.subscriptions.delivery_state import Schedule, read_item, schedule_key

MARGIN_MS = 1_000
"""An execution that wakes so much later than something is due is early enough: what is due is
posted within the second."""
WAKING_MS = 10_000
"""An execution may come so much after its alarm."""
_TRIES = 8
_HELD_BY_ME = "holder = :me"
Ending: TypeAlias = Literal["released", "again", "lost"]


class Held(NamedTuple):
    """An answer to who wants to hold: the schedule, whether it is held now, and by somebody who
    cannot tell what the last holder left."""

    schedule: Schedule
    mine: bool
    dirty: bool


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a poster knows when it releases. Times are in milliseconds since the epoch."""

    due_ms: int | None
    """When the next message is due; None where none waits."""
    error: str
    sent_ms: int
    blocks: bool
    clean_ms: tuple[int, ...]
    marks_ms: tuple[int, ...]
    dues_ms: tuple[int, ...]
    kept_until_ms: int
    looked_ms: int
    posted_ms: int


class Released(NamedTuple):
    """How a release went; `starts`: an execution of that number is to be started."""

    ending: Ending
    starts: int | None = None


def hold(core: Core, schedule: Schedule, holder: str, generation: int | None = None) -> Held | None:
    """Become the one that posts, if nobody does; None where the subscription is gone.

    With `generation` as the execution of that number, which takes charge.

    A: holds until 12:00:30 ─── posts ───> 12:00:29 done
    B: 12:00:10 holder = A, in time ──> refused
    C: 12:00:33 A's time is over    ──> C holds, and cannot tell what A left
    """
    now_ms = core.now_ms()
    lapsed_ms = now_ms - int(delivery_state.SKEW_MS * core.clock.scale)
    update = "SET holder = :me, held_until = :until"
    condition = "attribute_exists(pk) AND (attribute_not_exists(holder) OR held_until < :lapsed)"
    values: Item = {
        ":me": {"S": holder},
        ":until": {"N": str(now_ms + delivery_state.hold_ms(core))},
        ":lapsed": {"N": str(lapsed_ms)},
    }
    if generation is not None:
        update += ", generation = :mine"
        condition += " AND generation <= :mine"
        values[":mine"] = {"N": str(generation)}
    request = _request(core, schedule, update + " REMOVE again", condition, values)
    try:
        item = core.store.write("UpdateItem", {**request, "ReturnValues": "ALL_OLD"})
    except ConditionFailed as failed:
        if failed.item is None:
            return None
        found = read_item(failed.item)
        return Held(found, mine=found.holder == holder, dirty=True)
    assert item is not None
    found = read_item(item)
    changed = msgspec.structs.replace(
        found, generation=found.generation if generation is None else generation
    )
    return Held(changed, mine=True, dirty=bool(found.holder))


def renew(core: Core, schedule: Schedule, holder: str) -> bool | None:
    """Hold for longer; whether this one still did, None where that cannot be told now."""
    until_ms = core.now_ms() + delivery_state.hold_ms(core)
    values = {":me": {"S": holder}, ":until": {"N": str(until_ms)}}
    request = _request(core, schedule, "SET held_until = :until", _HELD_BY_ME, values)
    try:
        core.store.write("UpdateItem", request)
    except ConditionFailed:
        return False
    except Unavailable:
        return None
    return True


def sign(core: Core, schedule: Schedule, start: str) -> Schedule | None:
    """Have the present holder look again from a key on before it leaves.

    Answers None where it will; else the schedule as it stands, which that holder has left.
    """
    if schedule.again is not None and schedule.again <= start:
        return None
    values = {":start": {"S": start}, ":seen": {"S": schedule.holder}}
    condition = "holder = :seen AND (attribute_not_exists(again) OR again > :start)"
    found = _write(core, schedule, "SET again = :start", condition, values)
    if found is None:
        return None
    told = found.holder == schedule.holder and found.again is not None and found.again <= start
    return None if told else found


def leave_alarm(core: Core, schedule: Schedule) -> Schedule | None:
    """Leave what is due to the present holder: it starts another execution where one is needed.

    Answers None where it does; else the schedule as it stands, which that holder has left.
    """
    values = {
        ":seen": {"S": schedule.holder},
        ":charge": {"N": str(schedule.generation)},
    }
    condition = "holder = :seen AND generation = :charge"
    return _write(core, schedule, "REMOVE alarm", condition, values)


def take_sign(core: Core, schedule: Schedule, holder: str) -> str | None:
    """The key from which on to look again; None where this one does not hold any more."""
    request = _request(core, schedule, "REMOVE again", _HELD_BY_ME, {":me": {"S": holder}})
    try:
        item = core.store.write("UpdateItem", {**request, "ReturnValues": "ALL_OLD"})
    except ConditionFailed:
        return None
    return str((item or {}).get("again", {"S": ""})["S"])


def release(
    core: Core, schedule: Schedule, holder: str, left: Left, generation: int | None
) -> Released:
    """Stop being the one that posts, and write down what waits.

    Not while there is a sign, unless what fails blocks the others: the next round looks at all.
    `generation`: of the execution that does this and wakes when something is due.
    """
    blocked = left.due_ms is not None and left.blocks
    for _ in range(_TRIES):
        starting = generation is None and _needs_start(core, schedule, left)
        starts = schedule.starts + 1
        request = _release(core, schedule, holder, left, generation, starting, blocked)
        try:
            core.store.write("UpdateItem", request)
        except ConditionFailed as failed:
            if failed.item is None:
                return Released("lost")
            found = read_item(failed.item)
            if found.holder != holder:
                if failed.repeated and not found.holder:
                    break  # the SDK's first try took effect
                return Released("lost")
            if found.again is not None and not blocked:
                return Released("again")
            if found.late != schedule.late:
                left = msgspec.structs.replace(left, clean_ms=())
            schedule = found
            continue
        break
    else:
        raise Unavailable
    return Released("released", starts if starting else None)


def start_anew(core: Core, schedule: Schedule) -> int | None:
    """Count up for an execution that looks at once; None where somebody was faster.

    Only where nobody holds. A dead holder stays named, so that the next one knows of it.
    """
    lapsed_ms = core.now_ms() - int(delivery_state.SKEW_MS * core.clock.scale)
    values = {
        ":seen": {"N": str(schedule.starts)},
        ":starts": {"N": str(schedule.starts + 1)},
        ":now": {"N": str(core.now_ms())},
        ":lapsed": {"N": str(lapsed_ms)},
    }
    condition = "starts = :seen AND (attribute_not_exists(holder) OR held_until < :lapsed)"
    update = "SET starts = :starts, alarm = :now"
    return None if _write(core, schedule, update, condition, values) else schedule.starts + 1


def end_hold(core: Core, schedule: Schedule) -> None:
    """Have a hold lapse whose holder is gone for certain."""
    values = {":seen": {"S": schedule.holder}, ":none": {"N": "0"}}
    _write(core, schedule, "SET held_until = :none", "holder = :seen", values)


def _needs_start(core: Core, schedule: Schedule, left: Left) -> bool:
    if left.due_ms is None:
        return False
    wakes = core.now_ms() - WAKING_MS < schedule.alarm_ms <= left.due_ms + MARGIN_MS
    return not wakes


def _release(
    core: Core,
    schedule: Schedule,
    holder: str,
    left: Left,
    generation: int | None,
    starting: bool,
    blocked: bool,
) -> dict[str, Any]:
    due_ms = left.due_ms
    changes: Item = {
        "#state": {"S": "delivering" if due_ms is None else "retrying"},
        "marks": _numbers(left.marks_ms),
        "dues": _numbers(left.dues_ms),
        "kept_until": {"N": str(left.kept_until_ms)},
        "blocks": {"N": str(int(left.blocks))},
        "looked": {"N": str(left.looked_ms)},
        "posted": {"N": str(left.posted_ms)},
    }
    removed = ["holder", "held_until"]
    condition = _HELD_BY_ME
    values: Item = {":me": {"S": holder}}
    if left.clean_ms:
        changes["clean"] = _numbers(left.clean_ms)
        condition += " AND " + _same("late", schedule.late, values)
    if due_ms is None:
        removed += ["next_due", "probe_sent", "last_error"]
    else:
        changes["next_due"] = {"N": str(due_ms)}
        changes["probe_sent"] = {"N": str(left.sent_ms)}
        changes["last_error"] = {"S": left.error}
    if blocked:
        removed.append("again")
    else:
        condition += " AND attribute_not_exists(again)"
    if generation is not None and due_ms is None:
        removed.append("alarm")
    elif generation is not None or starting:
        changes["alarm"] = {"N": str(due_ms)}
    if generation is None:
        condition += " AND " + _same("alarm", schedule.alarm_ms, values)
    if starting:
        changes["starts"] = {"N": str(schedule.starts + 1)}
    sets = [f"{name} = :{name.strip('#')}" for name in changes]
    values |= {f":{name.strip('#')}": value for name, value in changes.items()}
    update = f"SET {', '.join(sets)} REMOVE {', '.join(removed)}"
    request = _request(core, schedule, update, condition, values)
    return {**request, "ExpressionAttributeNames": {"#state": "state"}}


def _same(name: str, seen: int, values: Item) -> str:
    if not seen:
        return f"attribute_not_exists({name})"
    values[f":{name}_seen"] = {"N": str(seen)}
    return f"{name} = :{name}_seen"


def _numbers(numbers: tuple[int, ...]) -> dict[str, Any]:
    return {"L": [{"N": str(number)} for number in numbers]}


def _write(
    core: Core, schedule: Schedule, update: str, condition: str, values: Item
) -> Schedule | None:
    """None where it was written, or the subscription is gone; else the schedule as it stands."""
    try:
        core.store.write("UpdateItem", _request(core, schedule, update, condition, values))
    except ConditionFailed as failed:
        return None if failed.item is None else read_item(failed.item)
    return None


def _request(
    core: Core, schedule: Schedule, update: str, condition: str, values: Item
) -> dict[str, Any]:
    return {
        "TableName": core.tables.messages,
        "Key": schedule_key(schedule.subscription_id),
        "UpdateExpression": update,
        "ConditionExpression": condition,
        "ExpressionAttributeValues": values,
    }
