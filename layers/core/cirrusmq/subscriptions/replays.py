"""A group in time: it starts before its creation, or is rewound, from its topic's log.

    rewind to m3    the former source keeps m1 m2, a new one takes m3 m4 m5 … and all that follows
    the log         m1 m2 | m3 m4 m5 m6 m7 ──────> now
    operation             ──────────────>|            nothing behind this may be received yet
    fan_out                      m6 m7 ─────────>     puts the same parcels, if absent

No message that the operation still touches was received, so that no message is there twice, a
group's order holds and a step may run again. Nothing is put into the former source again: its
parcels' deleted, moved or held entries would be mixed up with the messages that are brought back.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter, LimitExceeded, NotRewindable
from cirrusmq.base.names import SUBSCRIPTION_NAME, check_name, new_id
from cirrusmq.base.timestamps import format_time, parse_time
from cirrusmq.model.topic import EARLIEST, LATEST, Replay, Subscription, Topic
from cirrusmq.queues import operations
from cirrusmq.queues.receiver_log import BEGINNING_MS
from cirrusmq.queues.resources import expire_resource, put_resource
from cirrusmq.runtime.core import Core
from cirrusmq.storage.directory import subscription_key
from cirrusmq.storage.optimistic_locking import DirectoryChange, change
from cirrusmq.subscriptions import writes
from cirrusmq.subscriptions.subscriptions import find_subscription

FORMER_SOURCES = 4
"""Each of them is read by every receive."""
REDELIVERED = 100
"""Most messages that one call delivers again."""


class GroupRewindRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a group's rewind."""

    to: Annotated[str, Meta(description="a time within the last 24 hours")]


class RedeliverRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a redelivery: the messages that are delivered once more."""

    ids: Annotated[
        list[str],
        Meta(
            min_length=1,
            max_length=REDELIVERED,
            description=f"an array of 1 to {REDELIVERED} ids of messages",
        ),
    ]


def check_start(core: Core, start: str) -> int | None:
    """Returns the time from which on a new group gets messages, in ms; None means from now on."""
    now_ms = core.now_ms()
    if start == LATEST:
        return None
    if start == EARLIEST:
        return oldest_ms(now_ms)
    start_ms = parse_time("start", start)
    if not oldest_ms(now_ms) <= start_ms <= now_ms:
        raise InvalidParameter(
            "start",
            "must be latest, earliest or a time that is not in the future; the earliest possible "
            "is " + format_time(oldest_ms(now_ms)),
        )
    return start_ms


def oldest_ms(now_ms: int) -> int:
    """Returns when the oldest message was published that a topic's log still has."""
    return now_ms - limits.TOPIC_LIFE_SECONDS * 1000


def begin(
    core: Core, topic: Topic, name: str, subscription_id: str, from_ms: int, by: str
) -> tuple[Replay, list[dict[str, Any]]]:
    """Returns a replay of the log from a time on, and a transaction's writes of it.

    It runs once it is released by `take_effect`; if the call stops before, the sweep runs it when
    no publish and no fan-out knows the subscription as it was before:

        the call   writes ── caches turned over ── releases: until now
                      └── stops ............... 33 s later: the sweep
    """
    until_ms = core.now_ms() + BEGINNING_MS
    details = {
        "topic_id": topic.id,
        "subscription": name,
        "subscription_id": subscription_id,
        "from_ms": from_ms,
        "until_ms": until_ms,
    }
    operation, written = operations.creation(core, topic, "replay", details, by, until_ms)
    return Replay(operation=operation.id, from_ms=from_ms, until_ms=until_ms), written


def take_effect(core: Core, subscription: Subscription) -> None:
    """Runs the replay, now that every cache has turned over."""
    replay = subscription.replay
    if replay is not None and core.now_ms() < replay.until_ms:
        until_ms = core.now_ms() + core.skew_ms
        operations.release(core, subscription.account, replay.operation, until_ms=until_ms)


def rewind(core: Core, topic: Topic, name: str, request: GroupRewindRequest, by: str) -> str:
    """Gives a group all messages published at `to` or later once more. Returns the operation's id.

    Its receipts for these messages end. by: the id of the access key that asks for it.
    """
    check_name("subscription", name, SUBSCRIPTION_NAME)
    to_ms, now_ms = parse_time("to", request.to), core.now_ms()
    if to_ms > now_ms:
        raise InvalidParameter("to", f"must not be in the future; it is now {format_time(now_ms)}")
    if to_ms < oldest_ms(now_ms):
        raise NotRewindable(f"the earliest time to rewind to is {format_time(oldest_ms(now_ms))}")
    rewound = change(core, lambda: _rewinding(core, topic, name, to_ms, by))
    take_effect(core, rewound)
    assert rewound.replay is not None
    return rewound.replay.operation


def finish(core: Core, topic_id: str, name: str, operation_id: str) -> None:
    """Makes everything receivable: the operation has put the last message."""

    def finished(before: Subscription) -> Subscription:
        replay = before.replay
        if replay is None or replay.operation != operation_id or not replay.running:
            return before
        return replace(before, replay=replace(replay, running=False))

    writes.update_subscription(core, topic_id, name, finished)


def _rewinding(
    core: Core, topic: Topic, name: str, to_ms: int, by: str
) -> DirectoryChange[Subscription]:
    found = find_subscription(core, topic.id, name)
    before, now_ms = found.value, core.now_ms()
    if before.protocol != "pull" or before.mode != "clustering":
        raise InvalidParameter("subscription", "must be a pull subscription in mode clustering")
    if before.replay is not None and before.replay.running:
        raise NotRewindable(
            f"operation {before.replay.operation} is still giving it what the topic's log has"
        )
    source_id = new_id(core.random)
    known_as = writes.resource(before)
    replay, started = begin(core, topic, name, before.id, to_ms, by)
    after = before.rewound(source_id, replay, oldest_ms(now_ms))
    if len(after.epochs) > FORMER_SOURCES:
        raise LimitExceeded(
            f"a group keeps messages from before at most {FORMER_SOURCES} rewinds; rewind it to "
            f"{format_time(after.epochs[-2].until_ms)} or before, or wait until they have expired"
        )
    return DirectoryChange(
        result=after,
        writes=[
            *writes.update(core, found, after),
            put_resource(core, source_id, known_as),
            *(
                expire_resource(core, dropped, known_as)
                for dropped in sorted(before.source_ids - after.source_ids)
            ),
            *started,
        ],
        keys=[subscription_key(topic.id, "")],
    )
