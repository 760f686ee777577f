"""A topic's copies in a queue that are shown as SNS's notifications, and the check of them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.deployment import Deployment

from cirrusmq.model.parcel import NOTIFICATION
from cirrusmq.model.topic import SubscriptionInput
from cirrusmq.publishing.records import is_topic_record
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import ARCHIVE, LOG, PARCELS, read_parcel
from cirrusmq.subscriptions.management import change_subscription
from cirrusmq.subscriptions.subscriptions import cached_subscriptions
from cirrusmq.subscriptions.topics import get_topic
from cirrusmq_local.judging.clients import ACCOUNT
from cirrusmq_local.judging.history import Violation

_CHANGES = 1_000
_SDK = {"RawMessageDelivery": "false", "region": "here", "url": "http://127.0.0.1:8081"}


def notify(core: Core) -> None:
    """Have the subscription `copy` of the topic `news` be one without raw delivery."""
    topic = get_topic(core, ACCOUNT, "news")
    change_subscription(core, topic, "copy", SubscriptionInput(), sdk=_SDK)


def check_notifications(deployment: Deployment) -> Iterator[Violation]:
    """Every parcel of a queue or a receiver that was ever written says whether its messages are
    notifications: the copies of what was published are, wherever they went, and no others."""
    core = deployment.auditor()
    topic = get_topic(core, ACCOUNT, "news")
    groups = {
        source_id for each in cached_subscriptions(core, topic.id) for source_id in each.source_ids
    }
    published: set[str] = set()
    read_to = 0
    while changes := deployment.engine.read_stream(core.tables.messages, read_to, _CHANGES):
        for change in changes:
            read_to, item = change.sequence, change.new_image
            kind = change.keys["pk"]["S"].partition("#")[0]
            if item is None:
                continue
            if kind == LOG and is_topic_record(item):
                published.add(item["sk"]["S"].partition("#")[2])
            if kind in (PARCELS, ARCHIVE):
                parcel = read_parcel(item)
                is_marked = NOTIFICATION in parcel.others
                of_group = "subscription" in (parcel.dead_letter or {})
                is_wanted = parcel.send_id in published and not of_group
                if parcel.source_id not in groups and is_marked != is_wanted:
                    told = "is" if is_marked else "is not"
                    yield Violation(
                        f"{item['pk']['S']} {item['sk']['S']} {told} shown as notifications"
                    )
