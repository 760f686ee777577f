"""Makes, changes and deletes one resource by the core's operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from cirrusmq.access import grants
from cirrusmq.base.errors import (
    AlreadyExists,
    GrantNotFound,
    QueueNotFound,
    ScheduleNotFound,
    TopicNotFound,
)
from cirrusmq.base.shapes import convert
from cirrusmq.model.described import with_given
from cirrusmq.model.queue import Queue, QueueInput, ReceiverInput, create_attributes
from cirrusmq.model.source import Source
from cirrusmq.model.topic import (
    SubscriptionInput,
    Topic,
    TopicAttributes,
    TopicInput,
    create_subscription,
    own_dead_letter_queue,
)
from cirrusmq.queues import queues, receiver_management, receivers
from cirrusmq.queues.counts import count
from cirrusmq.runtime.core import Core
from cirrusmq.schedules import schedule_management
from cirrusmq.schedules.schedule import ScheduleInput
from cirrusmq.storage import counters
from cirrusmq.subscriptions import management, subscriptions, topics
from cirrusmq.subscriptions.state import read_state
from cirrusmq_lambda.custom_resources.identity import Place
from cirrusmq_lambda.routes.access import GrantRequest, TopicGrantRequest

T = TypeVar("T")


class Resource:
    """The resource of a place. Each operation may be repeated, and may raise the core's errors."""

    has_own_id = True
    """True if `create` chooses the id of the new resource."""

    def __init__(self, core: Core, place: Place) -> None:
        self.core, self.place = core, place

    def find(self) -> str | None:
        """Returns the id of the resource with this name, or None if there is none."""
        raise NotImplementedError

    def create(self, resource_id: str, given: Any) -> str:
        """Makes the resource, or finds it with these attributes. Returns its id."""
        raise NotImplementedError

    def change(self, given: Any) -> None:
        """Sets these attributes, and all other attributes to their defaults."""
        raise NotImplementedError

    def contents(self) -> str | None:
        """Returns a text about the content that a delete would lose, or None."""
        return None

    def delete(self) -> None:
        """Deletes the resource."""
        raise NotImplementedError

    def _messages(self, *sources: Source) -> str | None:
        counts = [count(self.core, source) for source in sources]
        held = sum(each.active + each.inactive + each.delayed for each in counts)
        return _counted(held, "message")


class QueueResource(Resource):
    """A queue; with its receivers' messages as contents."""

    def find(self) -> str | None:
        queue = _found(self._queue)
        return queue.id if queue else None

    def create(self, resource_id: str, given: QueueInput) -> str:
        account, name = self.place.account, self.place.name
        made, _ = queues.create_queue(self.core, account, name, given, resource_id=resource_id)
        if made.id == resource_id:
            counters.note_use(self.core, made.id)
        return made.id

    def change(self, given: QueueInput) -> None:
        whole = _whole(create_attributes(given), QueueInput)
        queues.change_queue(self.core, self.place.account, self.place.name, whole)

    def contents(self) -> str | None:
        return self._messages(*receivers.all_sources(self.core, self._queue()))

    def delete(self) -> None:
        receiver_management.delete_queue(self.core, self.place.account, self.place.name)

    def _queue(self) -> Queue:
        return queues.find_queue(self.core, self.place.account, self.place.name).value


class ReceiverResource(Resource):
    """A receiver of a queue."""

    def find(self) -> str | None:
        listed = _found(lambda: receivers.list_receivers(self.core, self._queue().id)) or []
        return next((each.id for each in listed if each.name == self.place.name), None)

    def create(self, resource_id: str, given: ReceiverInput) -> str:
        made, _ = receiver_management.put_receiver(
            self.core, self._queue(), self.place.name, given, resource_id=resource_id
        )
        return made.id

    def change(self, given: ReceiverInput) -> None:
        # Its attributes are fixed: this finds it with equal ones, or is refused.
        receiver_management.put_receiver(
            self.core, self._queue(), self.place.name, given, exact=True
        )

    def contents(self) -> str | None:
        queue = self._queue()
        return self._messages(receivers.source_named(self.core, queue, self.place.name))

    def delete(self) -> None:
        receiver_management.delete_receiver(self.core, self._queue(), self.place.name)

    def _queue(self) -> Queue:
        return queues.find_queue(self.core, self.place.account, self.place.parent).value


class GrantResource(Resource):
    """A grant on a queue; it has no id, and uses its queue's."""

    has_own_id = False

    def find(self) -> str | None:
        return self._holder().id if _found(self._granted) else None

    def create(self, resource_id: str, given: GrantRequest | TopicGrantRequest) -> str:
        holder_id, granted = self._holder().id, _found(self._granted)
        if granted is not None and granted.permission != given.permission:
            raise AlreadyExists(f"account {self.place.name} has another permission already")
        self.change(given)
        return holder_id

    def change(self, given: Any) -> None:
        grants.put_grant(self.core, self._queue(), self.place.name, given.permission)

    def delete(self) -> None:
        grants.delete_grant(self.core, self._queue(), self.place.name)

    def _granted(self) -> grants.Grant | grants.TopicGrant:
        return grants.get_grant(self.core, self._queue(), self.place.name)

    def _holder(self) -> Queue | Topic:
        return self._queue()

    def _queue(self) -> Queue:
        return queues.find_queue(self.core, self.place.account, self.place.parent).value


class TopicGrantResource(GrantResource):
    """A grant on a topic."""

    def change(self, given: Any) -> None:
        grants.put_topic_grant(self.core, self._topic(), self.place.name, given.permission)

    def delete(self) -> None:
        grants.delete_topic_grant(self.core, self._topic(), self.place.name)

    def _granted(self) -> grants.TopicGrant:
        return grants.get_topic_grant(self.core, self._topic(), self.place.name)

    def _holder(self) -> Topic:
        return self._topic()

    def _topic(self) -> Topic:
        return topics.find_topic(self.core, self.place.account, self.place.parent).value


class TopicResource(Resource):
    """A topic; its contents are its subscriptions."""

    def find(self) -> str | None:
        topic = _found(self._topic)
        return topic.id if topic else None

    def create(self, resource_id: str, given: TopicInput) -> str:
        account, name = self.place.account, self.place.name
        made, _ = topics.create_topic(self.core, account, name, given, resource_id=resource_id)
        return made.id

    def change(self, given: TopicInput) -> None:
        whole = _whole(with_given(TopicAttributes(), given), TopicInput)
        topics.change_topic(self.core, self.place.account, self.place.name, whole)

    def contents(self) -> str | None:
        listed = subscriptions.list_subscriptions(self.core, self._topic())
        return _counted(len(listed), "subscription")

    def delete(self) -> None:
        management.delete_topic(self.core, self.place.account, self.place.name)

    def _topic(self) -> Topic:
        return topics.find_topic(self.core, self.place.account, self.place.name).value


class SubscriptionResource(Resource):
    """A subscription of a topic: to a queue, or a group of consumers."""

    def find(self) -> str | None:
        listed = _found(lambda: subscriptions.list_subscriptions(self.core, self._topic())) or []
        return next((each.id for each in listed if each.name == self.place.name), None)

    def create(self, resource_id: str, given: SubscriptionInput) -> str:
        made, _ = management.put_subscription(
            self.core, self._topic(), self.place.name, given, resource_id=resource_id
        )
        return made.id

    def change(self, given: SubscriptionInput) -> None:
        topic, name = self._topic(), self.place.name
        whole = msgspec.to_builtins(create_subscription(topic, name, given).attributes())
        present = subscriptions.get_subscription(self.core, topic, name)
        if present.dead_letter_queue == own_dead_letter_queue(present.id):
            # The service made this queue: without the attribute it may stay.
            whole = {key: held for key, held in whole.items() if held or key != "dead_letter_queue"}
        changed = convert(whole, SubscriptionInput)
        management.change_subscription(self.core, topic, name, changed)

    def contents(self) -> str | None:
        found = subscriptions.get_subscription(self.core, self._topic(), self.place.name)
        counts = read_state(self.core, found).counts
        held = counts.active + counts.inactive + counts.delayed if counts else 0
        return _counted(held, "message")

    def delete(self) -> None:
        management.delete_subscription(self.core, self._topic(), self.place.name)

    def _topic(self) -> Topic:
        return topics.find_topic(self.core, self.place.account, self.place.parent).value


class ScheduleResource(Resource):
    """A schedule."""

    def find(self) -> str | None:
        found = _found(lambda: schedule_management.find_schedule(self.core, *self._key))
        return found.value.id if found else None

    def create(self, resource_id: str, given: ScheduleInput) -> str:
        present = self.find()
        if present not in (None, resource_id):
            return str(present)  # of others
        made, _ = schedule_management.put_schedule(
            self.core, *self._key, given, resource_id=resource_id
        )
        return made.id

    def change(self, given: ScheduleInput) -> None:
        schedule_management.put_schedule(self.core, *self._key, given)

    def delete(self) -> None:
        schedule_management.delete_schedule(self.core, *self._key)

    @property
    def _key(self) -> tuple[str, str]:
        return self.place.account, self.place.name


_KINDS: dict[str, type[Resource]] = {
    "queue": QueueResource,
    "receiver": ReceiverResource,
    "grant": GrantResource,
    "topic": TopicResource,
    "subscription": SubscriptionResource,
    "topic_grant": TopicGrantResource,
    "schedule": ScheduleResource,
}


def resource_at(core: Core, place: Place) -> Resource:
    """Returns the resource of a place."""
    return _KINDS[place.kind](core, place)


def _found(read: Callable[[], T]) -> T | None:
    """Returns the result of `read`, or None if the resource or its parent does not exist."""
    try:
        return read()
    except (QueueNotFound, TopicNotFound, GrantNotFound, ScheduleNotFound):
        return None


def _counted(number: int, noun: str) -> str | None:
    """Returns `1 message`, `2 messages`, or None for zero."""
    return f"{number:,} {noun}{'s' * (number != 1)}" if number else None


def _whole(attributes: msgspec.Struct, shape: type[T]) -> T:
    """Returns a change to exactly these attributes."""
    return convert(msgspec.to_builtins(attributes), shape)
