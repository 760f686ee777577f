"""The items of a schedule's message, made as a send or a publish with a delay makes them.

Each has the rules of its queue or topic; a rate of the queue, and the account's, do not count it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cirrusmq.access.keys import Caller
from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import InvalidParameter, MessageTooLarge
from cirrusmq.model.delayed_id import with_delay
from cirrusmq.model.message import Message
from cirrusmq.model.priority import with_priority
from cirrusmq.model.queue import Queue
from cirrusmq.model.sender import with_sender
from cirrusmq.model.topic import Topic
from cirrusmq.publishing.log_records import make_log_record, new_id
from cirrusmq.publishing.publish import PublishMessage, PublishRequest, check_messages
from cirrusmq.publishing.recipients import any_ordered, confirmed_subscriptions, endpoints
from cirrusmq.queues.queues import get_queue
from cirrusmq.queues.wake_ups.announce import wake_receivers
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.schedules.schedule import Definition, ScheduledMessage
from cirrusmq.sending.making import Entry, items_for
from cirrusmq.sending.request_messages import new_send_id, read_content
from cirrusmq.sending.send import check_room
from cirrusmq.sending.send_request import SendMessage, check_message
from cirrusmq.storage.bodies.write import Placed
from cirrusmq.storage.parcels import put_if_unsent, read_parcel
from cirrusmq.subscriptions.topics import get_topic


class Fired(NamedTuple):
    """A message's items, and the wake-ups after they are written."""

    items: Sequence[Item]
    queue: Queue | None
    """The queue that it is put into; None if it goes to a topic."""
    purged_ms: int = 0

    def puts(self, core: Core) -> list[dict[str, object]]:
        """Returns a transaction's writes of the items."""
        table = core.tables.messages
        return [{"Put": put_if_unsent(table, item, self.purged_ms)} for item in self.items]

    def announce(self, core: Core, put_ms: int) -> None:
        """Wakes receivers that wait for the queue's messages."""
        if self.queue is not None:
            parcels = [item for item in self.items if item["pk"]["S"].startswith("Q#")]
            wake_receivers(core, self.queue, map(read_parcel, parcels), put_ms)


def make_message(core: Core, account: str, definition: Definition, due_ms: int) -> Fired:
    """Returns the items of the message for a time, or for now if the time is over.

    Raises the errors of a send or a publish: QueueNotFound, TopicNotFound, InvalidParameter,
    MessageTooLarge, LimitExceeded.
    """
    sender = Caller(account=account, key_id=definition.key_id)
    if definition.target.kind == "queue":
        queue = get_queue(core, account, definition.target.name)
        return _for_queue(core, queue, sender, definition.message, due_ms)
    topic = get_topic(core, account, definition.target.name)
    return _for_topic(core, topic, sender, definition.message, due_ms)


def _for_queue(
    core: Core, queue: Queue, sender: Caller, given: ScheduledMessage, due_ms: int
) -> Fired:
    attributes = queue.attributes
    if attributes.ordered:
        raise InvalidParameter("queue", "is ordered: its messages have no times of their own")
    least = limits.SCHEDULE_RETENTION_SECONDS
    if attributes.message_retention_seconds < least:
        raise InvalidParameter(
            "queue", f"must have a message_retention_seconds of at least {least}"
        )
    delay_seconds = max(0, -(-(due_ms - core.now_ms()) // 1000))
    # So that the id's time and its delay give the first key, by which the message is looked up.
    now_ms = due_ms - delay_seconds * 1000 if delay_seconds else core.now_ms()
    (content,) = with_sender([_content(given)], sender, queue.account, attributes.sender)
    if isinstance(given.priority, int):
        content = with_priority(content, given.priority)
    check_message(
        queue, SendMessage(group=given.group, priority=given.priority), content, "message"
    )
    check_room(core, queue, 1)
    entropy = ulid.entropy_of(new_send_id(core, now_ms))
    entry = Entry(position=0, message=content, available_ms=now_ms + delay_seconds * 1000)
    items = items_for(
        queue,
        [entry],
        parcel_id=ulid.encode(now_ms, with_delay(entropy, delay_seconds)),
        begun_ms=now_ms,
        now_ms=now_ms,
        take_sequence=_no_sequence,
    )
    return Fired(items.all, queue, queue.purged_ms)


def _for_topic(
    core: Core, topic: Topic, sender: Caller, given: ScheduledMessage, due_ms: int
) -> Fired:
    now_ms = core.now_ms()
    message = PublishMessage(routing_key=given.routing_key, deliver_at=due_ms / 1000)
    contents = with_sender([_content(given)], sender, topic.account, topic.attributes.sender)
    request = PublishRequest(messages=[message])
    try:
        drafts, _ = check_messages(
            core, topic, request, contents, confirmed_subscriptions(core, topic)
        )
    except InvalidParameter as error:
        # Their names in a publish; a schedule has one message.
        parameter = str(error.parameter).replace("messages[0]", "message")
        raise InvalidParameter(parameter, error.detail.partition(": ")[2]) from error
    drafts = {index: draft for index, draft in drafts.items() if draft.subscriptions}
    if not drafts:
        return Fired([], None)  # nobody gets it: nothing is kept, as of a publish
    queues = endpoints(core, drafts.values())
    in_order = any_ordered(drafts.values(), queues, now_ms)
    record = make_log_record(
        core,
        topic,
        drafts,
        queues,
        send_id=new_id(core, topic, now_ms, in_order=in_order),
        now_ms=now_ms,
        whole=True,
        place=_in_the_record,
    )
    return Fired([record], None)


def _content(given: ScheduledMessage) -> Message:
    content = read_content(given, given.group, "message")
    limit = limits.SCHEDULED_MESSAGE_BYTES
    if content.size_bytes + content.attributes_bytes > limit:
        raise MessageTooLarge(f"message: a schedule's message has at most {limit:,} bytes")
    return content


def _no_sequence(partition: int, count: int) -> int:
    raise AssertionError("an unordered queue has no sequence")


def _in_the_record(life_ms: int) -> Placed:
    """The place of a small message: the log record itself."""
    return Placed()
