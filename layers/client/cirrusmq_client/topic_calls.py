"""Calls on topics and their subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from cirrusmq_client.answers import (
    MessageTrace,
    NewSubscription,
    SubscriptionAttributes,
    SubscriptionWithState,
    TopicAttributes,
    TopicWithCounts,
)
from cirrusmq_client.calls import Attributes, Calls
from cirrusmq_client.errors import SubscriptionNotFound, TopicNotFound
from cirrusmq_client.messages import Message, Received
from cirrusmq_client.outcomes import Published
from cirrusmq_client.sources import Subscription, part, subscription_path, topic_path


class TopicCalls(Calls):
    """Topics and subscriptions. Errors are those of the contract, by their codes."""

    def create_topic(self, name: str, attributes: Attributes | None = None) -> TopicAttributes:
        """Make a topic, or find it with exactly these attributes; else AlreadyExists."""
        return cast(TopicAttributes, self._put(topic_path(name), attributes or {}))

    def change_topic(self, name: str, attributes: Attributes) -> TopicAttributes:
        """Change some attributes."""
        return cast(TopicAttributes, self._patch(topic_path(name), attributes))

    def show_topic(self, name: str) -> TopicWithCounts:
        """A topic's attributes and `counts`."""
        return cast(TopicWithCounts, self._get(topic_path(name)))

    def list_topics(self, prefix: str | None = None) -> Iterator[TopicAttributes]:
        """The account's topics, by name."""
        return self._pages("/topics", "topics", prefix=prefix)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its subscriptions."""
        self._delete(topic_path(name), TopicNotFound)

    def publish(self, topic: str, messages: Sequence[Message]) -> list[Published]:
        """Publish at most 16 messages at once; a lost answer is asked for again, safely."""
        shown = [message.to_json() for message in messages]
        path = topic_path(topic) + "/messages"
        if not self._transport.clock.exact:
            # Logs are in the order of attempts: a second of doubt would mix up what follows.
            self._learn_time()
        reply = self._with_attempt(
            lambda attempt: self._transport.call(
                "POST", path, {"messages": shown, "attempt": attempt}
            )
        )
        return [
            Published(entry["id"], entry["matched"], entry["sent_at"])
            for entry in reply.json["messages"]
        ]

    def trace(self, topic: str, message_id: str) -> MessageTrace:
        """The delivery state of a published message at each subscription."""
        return cast(MessageTrace, self._get(f"{topic_path(topic)}/messages/{part(message_id)}"))

    def read_log(
        self, source: str | Subscription, after: str | None = None, limit: int = 16
    ) -> tuple[list[Received], str]:
        """At most 100 messages of a log in order, and the cursor to continue from.

        The log of a topic, or the part of it that a broadcasting subscription selects; `after` is a
        time or a cursor.
        """
        path = source.path if isinstance(source, Subscription) else topic_path(source)
        page = self._get(path + "/messages", after=after, limit=limit)
        return [Received(message) for message in page["messages"]], str(page["cursor"])

    def create_subscription(self, topic: str, name: str, attributes: Attributes) -> NewSubscription:
        """Subscribe; for `http` the answer has the `secret` of its signatures."""
        return cast(NewSubscription, self._put(subscription_path(topic, name), attributes))

    def change_subscription(
        self, topic: str, name: str, attributes: Attributes
    ) -> SubscriptionAttributes:
        """Change some attributes."""
        return cast(SubscriptionAttributes, self._patch(subscription_path(topic, name), attributes))

    def show_subscription(self, topic: str, name: str) -> SubscriptionWithState:
        """A subscription's attributes, `counts` and state."""
        return cast(SubscriptionWithState, self._get(subscription_path(topic, name)))

    def list_subscriptions(self, topic: str) -> Iterator[SubscriptionAttributes]:
        """A topic's subscriptions."""
        return self._pages(topic_path(topic) + "/subscriptions", "subscriptions")

    def delete_subscription(self, topic: str, name: str) -> None:
        """Delete a subscription."""
        self._delete(subscription_path(topic, name), SubscriptionNotFound)

    def show_signing_secret(self, topic: str, name: str) -> str:
        """The secret that signs what a URL gets: a new one since the deployment's turned over."""
        return str(self.call("POST", subscription_path(topic, name) + "/secret")["secret"])

    def confirm_subscription(self, topic: str, name: str, token: str | None = None) -> None:
        """Confirm an endpoint with its token; its owner, without one, has a new one sent."""
        body = {} if token is None else {"token": token}
        self._post_once(subscription_path(topic, name) + "/confirm", body)
