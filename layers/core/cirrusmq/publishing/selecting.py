"""The messages of a record that a subscription selects after they were published.

A publish has all bodies at hand. A record of messages in an object has none: if a filter reads
bodies, the object is read, once for a record.
"""

from __future__ import annotations

from collections.abc import Mapping

from cirrusmq.model.envelope import Described
from cirrusmq.model.message import Message
from cirrusmq.model.topic import Subscription, TopicKind
from cirrusmq.publishing.records import TopicRecord
from cirrusmq.runtime.core import Core
from cirrusmq.storage.bodies.objects import BucketUnavailable, WantedObject, read_objects


def select(
    core: Core, record: TopicRecord, subscription: Subscription, kind: TopicKind
) -> list[int]:
    """The numbers of the messages that a subscription gets by its filter as it is now.

    Raises Unavailable if the bucket refuses an object that the filter needs.
    """
    selection = subscription.selection(kind)
    if not subscription.reads_bodies:
        return record.selected(selection)
    messages = dict(zip(record.positions, record.messages, strict=True))
    return record.selected(selection, bodies_of(core, record.send_id, record.object_days, messages))


def bodies_of(
    core: Core, send_id: str, object_days: int, messages: Mapping[int, Described]
) -> dict[int, str | bytes]:
    """Returns the bodies of messages by their numbers in their send, without missing bodies."""
    found = with_bodies(core, send_id, object_days, messages)
    return {position: each.body for position, each in found.items() if isinstance(each, Message)}


def with_bodies(
    core: Core, send_id: str, object_days: int, messages: Mapping[int, Described]
) -> Mapping[int, Described]:
    """Returns the messages themselves, from their object if they are in one.

    Messages that the object does not have are left out. Raises BucketUnavailable.
    """
    if not object_days:
        return messages
    sizes = {position: each.size_bytes for position, each in messages.items()}
    wanted = WantedObject(send_id=send_id, days=object_days, positions=set(messages), sizes=sizes)
    (there,) = read_objects(core, [wanted])
    if isinstance(there, BucketUnavailable):
        raise there
    return there
