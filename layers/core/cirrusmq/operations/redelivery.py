"""Delivering single messages of a topic to a subscription again, by their ids.

An operation of the kind `replay` with ids: it puts the message as it was published, in a separate
parcel, with a new life and new retries. The parcel and the operation's count are one transaction,
so that each message comes once however often a run stops:

    run 1   message 1: put, counted ── message 2: put, counted ── (stops)
    run 2                                                          message 3: put, counted
    run 1, late                        message 2 over an older count: refused, it ends
"""

from __future__ import annotations

from collections.abc import Iterator

from cirrusmq.base.errors import (
    Conflict,
    InvalidParameter,
    MessageNotFound,
    SubscriptionNotFound,
    Unavailable,
)
from cirrusmq.fanout.lone_parcels import items_of, lone_parcel
from cirrusmq.fanout.push_triggers import Notices
from cirrusmq.fanout.reader_parcels import notice_of
from cirrusmq.fanout.redelivered import put_redelivered
from cirrusmq.fanout.topic_shares import notifying
from cirrusmq.fanout.trace import find_logged, trace
from cirrusmq.invoking.waking import wake
from cirrusmq.model.parcel import send_and_position
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.publishing.log_reader import read_logged
from cirrusmq.queues import operations
from cirrusmq.queues.operations import Operation, Run, Step
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused, put_if_absent
from cirrusmq.storage.queries import Progress
from cirrusmq.subscriptions.lone_messages import expect_alone
from cirrusmq.subscriptions.replays import RedeliverRequest

_ON_ITS_WAY = ("pending", "retrying")


def redeliver(
    core: Core, topic: Topic, subscription: Subscription, request: RedeliverRequest, by: str
) -> Operation:
    """Starts delivering messages again; `by`: the id of the access key that asks for it.

    Raises MessageNotFound if the log no longer has a message, or it was not published to the
    subscription, and Conflict if one is on its way there.
    """
    if not subscription.takes_back:
        raise InvalidParameter("subscription", "must be a URL that is confirmed, or a pull group")
    for number, each in enumerate(request.ids):
        if send_and_position(each) is None:
            raise InvalidParameter(f"ids[{number}]", "must be the id of a message")
    ids = list(dict.fromkeys(request.ids))
    traces = core.in_parallel(lambda each: trace(core, topic, each), ids)
    for each, traced in zip(ids, traces, strict=True):
        shown = traced.states.get(subscription.name)
        if shown is None:
            raise MessageNotFound(f"{each} was not published to {subscription.name}")
        if shown.state in _ON_ITS_WAY:
            raise Conflict(f"{each} is on its way to {subscription.name}: it is {shown.state}")
    details = {
        "topic_id": topic.id,
        "subscription": subscription.name,
        "subscription_id": subscription.id,
        "ids": ids,
    }
    return operations.start(core, topic, "replay", details, by)


def steps(core: Core, run: Run, topic: Topic, subscription: Subscription) -> Iterator[Step]:
    """Puts message after message; the detail has the number of messages that are gone by now."""
    if not subscription.takes_back:
        raise SubscriptionNotFound
    ids, notices = run.operation.details["ids"], Notices(core)
    for number in range(run.operation.notes.get("next", 0), len(ids)):
        missed = run.operation.notes.get("missed", 0)
        subscription = expect_alone(core, subscription)
        if not _put(core, run, topic, subscription, ids[number], number + 1, notices):
            missed += 1
        notices.send()  # the sweep finds messages whose notice is lost
        detail = f"{missed} messages are gone from the topic's log" if missed else None
        yield Step(Progress(), 0, detail, {"next": number + 1, "missed": missed})
    if subscription.invoke is not None:
        wake(core, subscription.present_id)


def _put(
    core: Core,
    run: Run,
    topic: Topic,
    subscription: Subscription,
    message_id: str,
    following: int,
    notices: Notices,
) -> bool:
    """Puts a message into the subscription, and counts it. Returns False if the log has lost it."""
    found = find_logged(core, topic, message_id)
    logged = None if found is None else read_logged(core, topic, *found)
    if found is None or logged is None:
        return False
    record, index = found
    arrived = lone_parcel(
        core,
        subscription,
        logged.message,
        (record.send_id, record.positions[index]),
        run.operation.id,
        core.now_ms(),
        others=notifying(subscription),
        object_days=record.object_days,
    )
    if arrived is None:
        return False
    counted, count = run.count({"next": following})
    items = items_of(arrived, logged.message)
    writes = [{"Put": put_if_absent(core.tables.messages, item)} for item in items]
    try:
        core.store.transact([*writes, put_redelivered(core, subscription.id, arrived), count])
    except TransactionRefused as refused:
        # This write took effect and its answer was lost, or another runner works on it: the next
        # runner reads how far it is.
        raise Unavailable from refused
    run.found = counted
    if subscription.protocol == "http":
        notices.note(notice_of(subscription, [arrived]))
    return True
