"""Deciding a half message: exactly one of commit and rollback, whatever stops or comes twice.

    commit      transact(half message: prepared ──> committed, log record) ── its mark is removed
    rollback    half message: prepared ──> rolled back                     ── its mark is removed

Both are conditions on `prepared`, and a refused call reads the decision: the same decision gets the
answer of the first again, the other one Conflict. All that a publish decides is decided at
the commit, by the time and the subscriptions of then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cirrusmq.access.rate_limit import count_copies
from cirrusmq.base.errors import Conflict, InvalidParameter, MessageNotFound, Unavailable
from cirrusmq.model.topic import Topic
from cirrusmq.publishing.half_messages.half import Half, half_partition, id_of
from cirrusmq.publishing.half_messages.items import (
    commit_update,
    delete_mark,
    find_half,
    mark_of,
    roll_back_update,
)
from cirrusmq.publishing.log_records import make_log_record, new_id
from cirrusmq.publishing.recipients import (
    Draft,
    any_ordered,
    confirmed_subscriptions,
    endpoints,
    make_draft,
)
from cirrusmq.publishing.records import Published
from cirrusmq.publishing.selecting import bodies_of
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused, put_if_absent
from cirrusmq.sending.deduplication import Stored, find_reminded, put_reminders, reminders
from cirrusmq.sending.request_messages import stored, without_duplicates
from cirrusmq.storage.bodies.object import life_days
from cirrusmq.storage.bodies.objects import copy_object
from cirrusmq.storage.bodies.write import Placed

_TRIES = 8


def commit(core: Core, topic: Topic, account: str, handle: str) -> list[Published]:
    """Publishes a half message. Each commit returns the same. Raises Conflict, MessageNotFound."""
    for _ in range(_TRIES):
        half = _find(core, topic, account, handle)
        if half.state == "rolled_back":
            raise Conflict(_why_rolled_back(half))
        if half.state == "committed":
            return list(half.announced)
        if core.now_ms() >= half.until_ms:
            time_out(core, half)
            continue
        announced = _try_commit(core, topic, half)
        if announced is not None:
            _remove_mark(core, half)
            count_copies(core, account, sum(each.matched for each in announced))
            return announced
    raise Unavailable


def roll_back(core: Core, topic: Topic, account: str, handle: str) -> None:
    """Drops a half message, unless that was done before. Raises Conflict, MessageNotFound."""
    for _ in range(_TRIES):
        half = _find(core, topic, account, handle)
        if half.state == "committed":
            raise Conflict("the half message was committed before")
        if half.state == "rolled_back":
            return
        update = roll_back_update(core, half, core.now_ms(), timed_out=False)
        if core.store.try_write("UpdateItem", update):
            _remove_mark(core, half)
            return
    raise Unavailable


def time_out(core: Core, half: Half) -> bool:
    """Rolls back a half message whose time is over. Returns True if it was still undecided.

    Its mark stays, by which the sweep reports it.
    """
    update = roll_back_update(core, half, core.now_ms(), timed_out=True)
    return core.store.try_write("UpdateItem", update)


def _find(core: Core, topic: Topic, account: str, handle: str) -> Half:
    half_id = id_of(handle)
    if half_id is None:
        raise InvalidParameter(
            "handle", "must be a handle that a publish with transaction answered"
        )
    half = find_half(core, topic.id, half_partition(topic, half_id), half_id)
    if half is None or half.terms.account != account:
        raise MessageNotFound(
            "There is no half message of this handle, or it was decided over a day ago."
        )
    return half


def _why_rolled_back(half: Half) -> str:
    if half.timed_out:
        return f"the half message was rolled back: nobody decided in time ({half.checks} checks)"
    return "the half message was rolled back before"


def _try_commit(core: Core, topic: Topic, half: Half) -> list[Published] | None:
    """Commits a prepared half message. Returns None if that was refused: it must be read again.

    A message with a deduplication id in use is left out, as of any publish.
    """
    now_ms = core.now_ms()
    drafts = _drafts(core, topic, half)
    queues = endpoints(core, drafts.values())
    in_order = any_ordered(drafts.values(), queues, now_ms)
    send_id = new_id(core, topic, now_ms, in_order=in_order)
    keys = {
        index: draft.deduplication_id if draft.subscriptions else None
        for index, draft in drafts.items()
    }
    known: dict[str, Stored] = {}
    while True:
        fresh = without_duplicates(keys, known)
        own = stored(send_id, {index: drafts[index].message for index in fresh}, now_ms)
        announced = _announce(drafts, keys, own, known)
        update = commit_update(core, half, announced, now_ms)
        wanted = {index: drafts[index] for index in fresh if drafts[index].subscriptions}
        if not wanted:
            return announced if core.store.try_write("UpdateItem", update) else None
        record = make_log_record(
            core,
            topic,
            wanted,
            queues,
            send_id=send_id,
            now_ms=now_ms,
            whole=len(wanted) == len(drafts),
            place=partial(_place, core, half, send_id),
        )
        reminded = reminders(topic.id, keys, {index: own[index] for index in wanted})
        writes = put_reminders(core, reminded, now_ms)
        writes += [{"Put": put_if_absent(core.tables.messages, record)}, {"Update": update}]
        try:
            _transact(core, writes)
        except TransactionRefused as refused:
            found = find_reminded(reminded, refused.failed)
            if len(writes) - 1 in refused.failed or not found:
                return None
            known |= found
        else:
            return announced


def _transact(core: Core, writes: Sequence[Mapping[str, Any]]) -> None:
    core.store.transact(writes)


def _drafts(core: Core, topic: Topic, half: Half) -> dict[int, Draft]:
    subscriptions = confirmed_subscriptions(core, topic)
    terms, bodies = half.terms, dict[int, str | bytes]()
    if any(each.reads_bodies for each in subscriptions):
        bodies = bodies_of(core, half.id, half.object_days, half.messages)
    return {
        index: make_draft(
            *(topic, subscriptions, message),
            *(terms.routing_keys[index], terms.deduplication_ids[index], bodies.get(index, "")),
        )
        for index, message in half.messages.items()
    }


def _place(core: Core, half: Half, send_id: str, life_ms: int) -> Placed:
    """Returns the place of the publish's messages, readable for `life_ms`."""
    if not half.object_days:
        return Placed(packed=half.packed)
    days = life_days(life_ms)
    copy_object(core, half.id, half.object_days, send_id, days)
    return Placed(days)


def _announce(
    drafts: Mapping[int, Draft],
    keys: Mapping[int, str | None],
    own: Mapping[int, Stored],
    known: Mapping[str, Stored],
) -> list[Published]:
    """Returns each message's answer: its own, or the first message's with its deduplication id."""
    firsts = {key: own[index] for index, key in keys.items() if key is not None and index in own}
    firsts |= known
    told = []
    for index, draft in drafts.items():
        key = keys[index]
        each = own[index] if index in own or key is None else firsts[key]
        told.append(Published(each.id, len(draft.subscriptions), each.sent_ms))
    return told


def _remove_mark(core: Core, half: Half) -> None:
    """Removes the mark of a decided half message; a mark that is left is removed when it is met."""
    with contextlib.suppress(Unavailable):
        delete_mark(core, mark_of(half))
