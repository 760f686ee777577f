"""Shares that cannot be handed out: put aside, so that the others of their shard go on.

    fan_out   m1 fails three times ── put aside ── m2: put aside untried       m9: behind them
    drainer                              └──────── m1 ── m2 ── m3 … as long as there is something

A reader that is promised an order gets first what lies aside, whoever hands it out: fan_out, which
looks before it hands out a batch's first share, or the reader's drainer. Only one of them does at
a time, under a hold on the reader's lot; else m2 could pass m1.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from cirrusmq import lots
from cirrusmq.core import Core
from cirrusmq.fan_out import handouts_of
from cirrusmq.handouts import Handout, LogEntry, levels
from cirrusmq.names import new_id
from cirrusmq.notices import Notices
from cirrusmq.storage.parked import in_order_key, parked_item, parked_keys
from cirrusmq.storage.store import ConditionFailed, Item

PATIENCE_MS = 60_000
"""A drainer that has tried for so long leaves what fails to the next one: the sweep starts it."""
WAIT_MS = (100, 10_000)
_PAGE = 25
Left: TypeAlias = Literal["nothing", "something", "held by another"]


def put_aside(core: Core, handout: Handout) -> None:
    """Put a share aside, behind those that are. Its reader's lot is marked before."""
    entry = handout.entry
    item = parked_item(
        handout.reader_id, entry.item, entry.place, entry.came_ms, in_order=handout.in_order
    )
    with contextlib.suppress(ConditionFailed):  # it came again, and is here already
        core.store.put_if_absent(core.tables.messages, item)


def clear_the_way(core: Core, reader_id: str, deadline_ms: int, notices: Notices) -> Left:
    """Hand out what lies aside of a reader that is promised an order; what is left then."""
    if not lots.exists(core, reader_id):
        return "nothing"
    keys = [in_order_key(reader_id)]
    if _is_empty(core, keys):
        return "nothing"
    return _drain(core, reader_id, keys, deadline_ms, notices)


def drain(core: Core, reader_id: str, most_ms: int) -> None:
    """Hand out all that lies aside of a reader; what fails is tried again, for a while."""
    scale = core.clock.scale
    deadline_ms = core.now_ms() + int(most_ms * scale)
    patient_until_ms = core.now_ms() + int(PATIENCE_MS * scale)
    wait_ms = WAIT_MS[0]
    while core.now_ms() < deadline_ms:
        notices = Notices(core)
        try:
            left = _drain(core, reader_id, parked_keys(reader_id), deadline_ms, notices)
        finally:
            notices.send()
        if left == "nothing":
            lots.remove(core, reader_id)
        if left != "something" or core.now_ms() >= patient_until_ms:
            return
        core.clock.sleep(core.random.uniform(0.5, 1) * wait_ms * scale / 1000)
        wait_ms = min(2 * wait_ms, WAIT_MS[1])


def start_draining(core: Core, reader_id: str) -> None:
    """Have what lies aside of a reader handed out, soon and elsewhere."""
    core.invoke("replay", {"parked": reader_id})


def resume(core: Core) -> None:
    """Have handed out what lies aside of readers that nobody is at."""
    for reader_id in lots.idle(core):
        start_draining(core, reader_id)


def _drain(
    core: Core, reader_id: str, keys: Sequence[str], deadline_ms: int, notices: Notices
) -> Left:
    """Hand out what lies under these keys, as the only one; what is left of it.

    fan_out    puts m5 aside ── starts a drainer B
    B                           refused: A holds, and looks again behind its release
    A          finds no more ─────────────────── releases ── looks: m5 ── holds
    """
    holder = new_id(core.random)
    while True:
        if not lots.hold(core, reader_id, holder):
            return "held by another"
        try:
            done = [_drain_key(core, reader_id, holder, pk, deadline_ms, notices) for pk in keys]
        finally:
            lots.release(core, reader_id, holder)
        if not all(done):
            return "something"
        if _is_empty(core, keys):
            return "nothing"


def _drain_key(
    core: Core, reader_id: str, holder: str, pk: str, deadline_ms: int, notices: Notices
) -> bool:
    """Hand out what lies under a key, in order where one is promised; whether all of it is done."""
    after: Item | None = None
    all_done = True
    while True:
        page, after = _page(core, pk, after)
        if page and (core.now_ms() >= deadline_ms or not lots.hold(core, reader_id, holder)):
            return False
        in_order = pk == in_order_key(reader_id)
        left = _give_page(core, reader_id, page, in_order, deadline_ms, notices)
        done = [each for each in page if each["sk"]["S"] not in left]
        list(core.together(lambda each: _forget(core, each), done))
        all_done = all_done and not left
        if after is None or (left and in_order):
            return all_done


def _give_page(
    core: Core,
    reader_id: str,
    page: Sequence[Item],
    in_order: bool,
    deadline_ms: int,
    notices: Notices,
) -> set[str]:
    """Hand out what these parked items stand for; the sort keys of those that are left.

    Where an order is promised, what is behind a failure waits.
    """
    places = [(each["log"]["S"], each["of"]["S"]) for each in page]
    records = core.store.get_many(core.tables.messages, sorted(set(places)), consistent=True)
    left: set[str] = set()
    handouts: list[Handout] = []
    for parked, place in zip(page, places, strict=True):
        name = parked["sk"]["S"]
        if in_order and left:
            left.add(name)
        elif place in records:  # else it has expired
            try:
                came_ms = int(parked["c"]["N"])
                entry = LogEntry(item=records[place], place=name, came_ms=came_ms)
                handouts += _shares(core, reader_id, entry)
            except Exception:
                left.add(name)
    for step in levels(handouts):
        if core.now_ms() >= deadline_ms or (in_order and left):
            left |= {each.entry.place for each in step}
            continue
        done = core.together(_try, step)
        given = [each for each, is_done in zip(step, done, strict=True) if is_done]
        given_for_good = {id(each) for each in given} - {id(each) for each in notices.add(given)}
        left |= {each.entry.place for each in step if id(each) not in given_for_good}
    return left


def _shares(core: Core, reader_id: str, entry: LogEntry) -> list[Handout]:
    """The reader's share of a record, none where the reader is gone.

    Everybody's, where it is the log's own id: such a record came by no stream.
    """
    everybody = entry.log_id == reader_id
    return [each for each in handouts_of(core, entry) if everybody or each.reader_id == reader_id]


def _try(handout: Handout) -> bool:
    try:
        handout.give()
    except Exception:
        return False
    return True


def _forget(core: Core, parked: Item) -> None:
    place = {name: parked[name] for name in ("pk", "sk")}
    core.store.write("DeleteItem", {"TableName": core.tables.messages, "Key": place})


def _is_empty(core: Core, keys: Sequence[str]) -> bool:
    return not any(_page(core, pk, None, most=1)[0] for pk in keys)


def _page(
    core: Core, pk: str, after: Item | None, most: int = _PAGE
) -> tuple[list[Item], Item | None]:
    request: dict[str, Any] = {
        "TableName": core.tables.messages,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
        "ConsistentRead": True,
        "Limit": most,
    }
    if after is not None:
        request["ExclusiveStartKey"] = after
    items, last, _ = core.store.query(request)
    return items, last
