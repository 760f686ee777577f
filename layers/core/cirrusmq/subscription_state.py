"""How a subscription stands: its counts, and whether delivering goes well."""

from __future__ import annotations

from typing import Any

from cirrusmq import schedules
from cirrusmq.core import Core
from cirrusmq.counting import count
from cirrusmq.limits import COUNT_EXACT_MESSAGES
from cirrusmq.scan import scan_pages
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.subscription_source import subscription_source
from cirrusmq.subscriptions import cached_subscriptions
from cirrusmq.timestamps import format_time
from cirrusmq.topic import Subscription, Topic


def show_state(core: Core, subscription: Subscription) -> dict[str, Any]:
    """`counts`, `state` and, for a URL, what is tried next."""
    shown: dict[str, Any] = {"state": "delivering"}
    if subscription.protocol != "queue" and subscription.mode != "broadcasting":
        shown["counts"] = _counts(core, subscription)
    if not subscription.confirmed:
        shown["state"] = "unconfirmed"
    elif subscription.protocol == "http":
        schedule = schedules.read(core, subscription.id)
        if schedule is not None and schedule.state == "retrying":
            shown["state"] = "retrying"
            shown["next_attempt_at"] = format_time(schedule.next_due_ms)
            shown["last_error"] = schedule.last_error
    return shown


def _counts(core: Core, subscription: Subscription) -> dict[str, int]:
    counts = count(core, subscription_source(subscription))
    if subscription.protocol == "http":  # a probe and what is blocked behind it are to be pushed
        return {"active": counts.kept, "inactive": 0, "delayed": 0}
    return {"active": counts.active, "inactive": counts.inactive, "delayed": counts.delayed}


def topic_counts(core: Core, topic: Topic) -> dict[str, int]:
    """Messages that some subscription has not taken yet; a bound above 10,000."""
    now_ms = core.now_ms()
    waiting: set[str] = set()
    for subscription in cached_subscriptions(core, topic.id):
        if subscription.protocol == "queue" or subscription.mode == "broadcasting":
            continue
        source = subscription_source(subscription)
        for partition in range(source.partitions):
            pk = partition_key(PARCELS, source.id, partition)
            for page in scan_pages(core, pk):
                for parcel in page.parcels:
                    waiting.update(
                        parcel.message_id(place)
                        for place in range(parcel.count)
                        if parcel.live(place) and now_ms < parcel.expires_ms
                    )
                if len(waiting) > COUNT_EXACT_MESSAGES:
                    return {"active": len(waiting)}
    return {"active": len(waiting)}
