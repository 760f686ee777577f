"""Giving a group the messages of its topic's log, record after record in the order of the log.

A replay that names messages by their ids delivers them alone, to a group or a URL (`redelivery`).

A record that was published for the group has the share that was decided then; from an earlier one
the group gets the messages that its filter selects now. The progress, one key for all of the log's
partitions, is the frontier: receivers take nothing behind it (see `subscriptions.replays`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from cirrusmq.base import limits
from cirrusmq.base.errors import SubscriptionNotFound
from cirrusmq.fanout.reader_parcels import parcels_of, put_side_by_side
from cirrusmq.fanout.topic_shares import fair_share
from cirrusmq.invoking.waking import wake
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.operations import redelivery
from cirrusmq.publishing.log_reader import log_between
from cirrusmq.publishing.records import holds_messages, read_record
from cirrusmq.queues.operations import Run, Step
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.storage import directory
from cirrusmq.storage.directory import topic_key
from cirrusmq.storage.queries import LAST_KEY, Progress
from cirrusmq.subscriptions import replays
from cirrusmq.subscriptions.subscriptions import find_subscription

RECORDS = 100
"""Records in one step. Their parcels are put in parallel."""
LAG_MS = 1_000
"""Fan-out is done with a record by then, unless something fails."""


def steps(core: Core, run: Run) -> Iterator[Step]:
    """Puts the parcels of every record up to the time when all knew what the group gets.

        fan_out   reads the group as it was ── puts m7 into the former source
        step                                       puts m7 into the new one
        fan_out                     m8 ──────────────────────────── puts m8, in the new one

    If m7 is deleted before a fan-out that lags puts it, it comes again, as after a repetition of
    the stream. So nothing begins before fan-out is done with the records published until then.
    """
    operation = run.operation
    details = operation.details
    topic, group = _topic(core, run), _group(core, run)
    if "ids" in details:
        yield from redelivery.steps(core, run, topic, group)
        return
    if operation.progress.after == LAST_KEY:
        replays.finish(core, topic.id, group.name, operation.id)
        return
    from_ms, scale = details["from_ms"], core.clock.scale
    wait_for_fan_out(core, details["until_ms"])
    after = operation.progress.after or f"{from_ms - int(limits.KEY_SLACK_MS * scale):013d}"
    partitions, last = topic.attributes.partitions, last_key(core, details["until_ms"])
    items = log_between(core, topic.id, partitions, after, last)

    def deliver_records(some: Sequence[Item]) -> int:
        nonlocal group
        group = _group(core, run)
        return _hand_out(core, topic, group, some, from_ms)

    for step in record_by_record(topic.id, items, after, deliver_records):
        yield step
        _wake(core, group)
    replays.finish(core, topic.id, group.name, operation.id)
    _wake(core, group)


def wait_for_fan_out(core: Core, until_ms: int) -> None:
    """Waits until fan-out is done with the log before a time, unless something fails."""
    core.wait_until(until_ms + int((limits.ATTEMPT_AHEAD_MS + LAG_MS) * core.clock.scale))


def last_key(core: Core, until_ms: int) -> str:
    """Returns a key behind the keys of a log whose records may be from before a time."""
    return f"{until_ms + int(limits.ATTEMPT_AHEAD_MS * core.clock.scale):013d}{LAST_KEY}"


def record_by_record(
    log_id: str, items: Iterable[Item], after: str, deliver_records: Callable[[Sequence[Item]], int]
) -> Iterator[Step]:
    """Hands out the records of a log behind a key, a few at a time; the last step marks the end.

    hand_out: returns the number of their messages.
    """
    behind = (item for item in items if item["sk"]["S"] > after)
    while some := list(islice(behind, RECORDS)):
        done = deliver_records(some)
        yield Step(Progress(log_id, some[-1]["sk"]["S"]), done)
    # Everything may be received once this is saved, so that no later run may put anything.
    yield Step(Progress(log_id, LAST_KEY), 0)


def _hand_out(
    core: Core, topic: Topic, group: Subscription, items: Sequence[Item], from_ms: int
) -> int:
    """Puts the parcels of these records that are not there yet. Returns the number of messages."""
    now_ms = core.now_ms()
    shares = [
        share
        for record in map(read_record, filter(holds_messages, items))
        if record.sent_ms >= from_ms
        and (share := fair_share(core, group, record, topic.attributes.filter)) is not None
        and now_ms < share.expires_ms
    ]
    return put_side_by_side(core, [parcel for share in shares for parcel in parcels_of(share)])


def _wake(core: Core, group: Subscription) -> None:
    if group.invoke is not None:
        wake(core, group.present_id)


def _topic(core: Core, run: Run) -> Topic:
    key = topic_key(run.operation.account, run.operation.topic)
    topic = directory.read_cached(core, key, Topic)
    if topic is None or topic.id != run.operation.details["topic_id"]:
        raise SubscriptionNotFound
    return topic


def _group(core: Core, run: Run) -> Subscription:
    """Returns the present subscription. Raises SubscriptionNotFound if that one is deleted."""
    details = run.operation.details
    found = find_subscription(core, details["topic_id"], details["subscription"]).value
    if found.id != details["subscription_id"]:
        raise SubscriptionNotFound
    return found
