"""Calls on topics and their subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from cirrusmq_client.answers import (
    MatchedMessage,
    MessageTrace,
    NewSubscription,
    SubscriptionAttributes,
    SubscriptionWithState,
    TopicAttributes,
    TopicGrantState,
    TopicWithCounts,
)
from cirrusmq_client.calls import Attributes, Calls
from cirrusmq_client.errors import GrantNotFound, SubscriptionNotFound, TopicNotFound
from cirrusmq_client.inputs import SubscriptionInput, TopicInput
from cirrusmq_client.messages import Message, Received, all_json
from cirrusmq_client.outcomes import Published, Undecided
from cirrusmq_client.sources import Subscription, Topic, part, subscription_path, topic_path
from cirrusmq_client.steps import Entries, Steps, driven, listed
from cirrusmq_client.times import to_text
from cirrusmq_client.transport import Reply

_DEFAULTS: TopicInput = {}
"""A type checker names the wrong key of a TypedDict, but of no union with None."""


class TopicCalls(Calls):
    """Calls on topics and subscriptions.

    The methods raise the contract's errors, subclasses of CirrusMQError.
    """

    @driven
    def create_topic(
        self, name: str, attributes: TopicInput = _DEFAULTS, *, exact: bool = False
    ) -> Steps[TopicAttributes]:
        """Creates a topic, or finds one with these attributes; as `create_queue`."""
        path = topic_path(name)
        return cast(TopicAttributes, (yield from self._put(path, attributes or {}, exact=exact)))

    @driven
    def change_topic(self, name: str, attributes: TopicInput) -> Steps[TopicAttributes]:
        """Changes some attributes. Returns all attributes."""
        return cast(TopicAttributes, (yield from self._patch(topic_path(name), attributes)))

    @driven
    def show_topic(self, name: str) -> Steps[TopicWithCounts]:
        """Returns a topic's attributes and `counts`."""
        return cast(TopicWithCounts, (yield from self._get(topic_path(name))))

    @listed
    def list_topics(self, prefix: str | None = None) -> Entries[TopicAttributes]:
        """Iterates over the account's topics, by name."""
        return self._pages("/topics", "topics", prefix=prefix)

    @driven
    def delete_topic(self, name: str) -> Steps[None]:
        """Deletes a topic and its subscriptions."""
        yield from self._delete(topic_path(name), TopicNotFound)

    @driven
    def publish(self, topic: str, messages: Sequence[Message]) -> Steps[list[Published]]:
        """Publishes at most 16 messages, all or none. Returns the id and matches of each.

        A call whose answer was lost is repeated, and stores nothing twice.
        """
        reply = yield from self._publish(topic, {"messages": all_json(messages)})
        return _published(reply)

    @driven
    def prepare(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        check_after_seconds: int = 60,
        max_checks: int = 15,
        group: str = "default",
    ) -> Steps[str]:
        """Stores at most 16 messages that nobody receives before `commit`. Returns their handle.

        After `check_after_seconds`, producers of the `group` get them by `receive_undecided`, to
        decide; without a decision after `max_checks` of these, the messages are rolled back.
        """
        terms = {
            "check_after_seconds": check_after_seconds,
            "max_checks": max_checks,
            "group": group,
        }
        shown = all_json(messages)
        reply = yield from self._publish(topic, {"messages": shown, "transaction": terms})
        return str(reply.json["transaction"]["handle"])

    @driven
    def commit(self, topic: str, handle: str) -> Steps[list[Published]]:
        """Publishes prepared messages; a repetition gets the same answer.

        Raises Conflict if they were rolled back.
        """
        path = topic_path(topic) + "/half/commit"
        return _published((yield from self._call("POST", path, {"handle": handle})))

    @driven
    def roll_back(self, topic: str, handle: str) -> Steps[None]:
        """Drops prepared messages; a repetition changes nothing.

        Raises Conflict if they were committed.
        """
        yield from self._call("POST", topic_path(topic) + "/half/rollback", {"handle": handle})

    @driven
    def receive_undecided(
        self,
        topic: str,
        max: int = 16,
        *,
        visibility_timeout_seconds: int = 30,
        group: str = "default",
    ) -> Steps[list[Undecided]]:
        """Returns messages that the group's producers prepared and did not decide in time.

        Decide them by `commit` or `roll_back`. A lost answer counts as a check.

        `visibility_timeout_seconds`: time for which nobody else gets them.
        """
        asked = {
            "max": max,
            "visibility_timeout_seconds": visibility_timeout_seconds,
            "group": group,
        }
        answer = yield from self._post_once(topic_path(topic) + "/half/receive", asked)
        return [
            Undecided(
                handle=each["handle"],
                messages=[Received(message, str(Topic(topic))) for message in each["messages"]],
                checks=each["checks"],
                max_checks=each["max_checks"],
                expires_at=each["expires_at"],
            )
            for each in answer["transactions"]
        ]

    def _publish(self, topic: str, body: Attributes) -> Steps[Reply]:
        path = topic_path(topic) + "/messages"
        if not self._transport.clock.exact:
            # Logs are in the order of attempts: an error of a second would mix up later messages.
            yield from self._learn_time()
        reply: Reply = yield from self._with_attempt(
            lambda attempt: self._call("POST", path, {**body, "attempt": attempt})
        )
        return reply

    @driven
    def match(self, topic: str, messages: Sequence[Message]) -> Steps[list[MatchedMessage]]:
        """Returns the subscriptions that would get each of at most 16 messages; publishes none."""
        body = {"messages": all_json(messages)}
        reply = yield from self._post_safely(topic_path(topic) + "/match", body)
        return list(reply["messages"])

    @driven
    def try_filter(
        self, topic: str, filter: Attributes | None, messages: Sequence[Message]
    ) -> Steps[list[MatchedMessage]]:
        """Tries a filter on at most 16 messages. Returns for each if it passes, and why not.

        Nothing is stored. Raises InvalidFilter if a subscription could not have the filter.
        """
        body = {
            "messages": all_json(messages),
            "filter": filter,
        }
        reply = yield from self._post_safely(topic_path(topic) + "/match", body)
        return list(reply["messages"])

    @driven
    def trace(self, topic: str, message_id: str, *, body: bool = False) -> Steps[MessageTrace]:
        """Returns the delivery state of a published message at each subscription.

        For a URL, `history` has the latest attempts, each with its error. `body`: True adds the
        message's content.
        """
        path = f"{topic_path(topic)}/messages/{part(message_id)}"
        return cast(MessageTrace, (yield from self._get(path, body="true" if body else None)))

    @driven
    def read_log(
        self, source: str | Subscription, after: str | None = None, limit: int = 16
    ) -> Steps[tuple[list[Received], str]]:
        """Returns at most 100 messages of a log in order, and the cursor to continue.

        `source`: a topic, or a broadcasting subscription, whose filter selects. `after`: a time or
        a cursor; None is the log's beginning.
        """
        log = source if isinstance(source, Subscription) else Topic(source)
        page = yield from self._get(log.path + "/messages", after=after, limit=limit)
        messages = [Received(message, str(log)) for message in page["messages"]]
        return messages, str(page["cursor"])

    @driven
    def create_subscription(
        self, topic: str, name: str, attributes: SubscriptionInput, *, exact: bool = False
    ) -> Steps[NewSubscription]:
        """Creates a subscription, or finds one with these attributes; as `create_queue`.

        For a new one of protocol `http` the answer has the `secret` of its signatures.
        """
        path = subscription_path(topic, name)
        return cast(NewSubscription, (yield from self._put(path, attributes, exact=exact)))

    @driven
    def change_subscription(
        self, topic: str, name: str, attributes: SubscriptionInput
    ) -> Steps[SubscriptionAttributes]:
        """Changes some attributes. Returns all attributes."""
        return cast(
            SubscriptionAttributes,
            (yield from self._patch(subscription_path(topic, name), attributes)),
        )

    @driven
    def show_subscription(self, topic: str, name: str) -> Steps[SubscriptionWithState]:
        """Returns a subscription's attributes, `counts` and state."""
        return cast(SubscriptionWithState, (yield from self._get(subscription_path(topic, name))))

    @listed
    def list_subscriptions(self, topic: str) -> Entries[SubscriptionAttributes]:
        """Iterates over a topic's subscriptions."""
        return self._pages(topic_path(topic) + "/subscriptions", "subscriptions")

    @driven
    def rewind_subscription(self, topic: str, name: str, to: datetime | str) -> Steps[str]:
        """Delivers everything published at or after a time to a group again.

        Returns the operation's id.
        """
        path = subscription_path(topic, name) + "/rewind"
        return str((yield from self._post_once(path, {"to": to_text(to)}))["operation"])

    @driven
    def redeliver(self, topic: str, name: str, *message_ids: str) -> Steps[str]:
        """Delivers at most 100 messages of the last day to a URL or a group again.

        Returns the operation's id. Raises MessageNotFound, or Conflict if a message is already
        under way there.
        """
        path = subscription_path(topic, name) + "/redeliver"
        return str((yield from self._post_once(path, {"ids": list(message_ids)}))["operation"])

    @driven
    def delete_subscription(self, topic: str, name: str) -> Steps[None]:
        """Deletes a subscription."""
        yield from self._delete(subscription_path(topic, name), SubscriptionNotFound)

    @driven
    def pause_subscription(self, topic: str, name: str) -> Steps[SubscriptionAttributes]:
        """Pauses a URL or a group: messages wait, within their retention, until it is resumed."""
        path = subscription_path(topic, name) + "/pause"
        return cast(SubscriptionAttributes, (yield from self._post_safely(path, {})))

    @driven
    def resume_subscription(self, topic: str, name: str) -> Steps[SubscriptionAttributes]:
        """Ends a pause; waiting messages are delivered first."""
        path = subscription_path(topic, name) + "/resume"
        return cast(SubscriptionAttributes, (yield from self._post_safely(path, {})))

    @driven
    def retry_now(self, topic: str, name: str) -> Steps[None]:
        """Posts a URL's messages that wait for their retry now, each once."""
        yield from self._post_once(subscription_path(topic, name) + "/retry", {})

    @driven
    def put_topic_grant(self, topic: str, account: str, permission: str) -> Steps[TopicGrantState]:
        """Grants another account a permission on a topic. Returns the grant.

        `permission`: `publish`, `subscribe`, `publish_subscribe`, `info`, `admin` or `full`. The
        other account names the topic `account:topic`.
        """
        body = {"permission": permission}
        return cast(TopicGrantState, (yield from self._put(_grant(topic, account), body)))

    @driven
    def show_topic_grant(self, topic: str, account: str) -> Steps[TopicGrantState]:
        """Returns another account's permission. Raises GrantNotFound."""
        return cast(TopicGrantState, (yield from self._get(_grant(topic, account))))

    @driven
    def list_topic_grants(self, topic: str) -> Steps[list[TopicGrantState]]:
        """Returns all grants on a topic."""
        return (yield from self._all(topic_path(topic) + "/grants", "grants"))

    @driven
    def delete_topic_grant(self, topic: str, account: str) -> Steps[None]:
        """Removes a grant; subscriptions that the account made stay."""
        yield from self._delete(_grant(topic, account), GrantNotFound)

    @driven
    def show_signing_secret(self, topic: str, name: str) -> Steps[str]:
        """Returns the current signing secret of a URL; it changes with the deployment's secret."""
        path = subscription_path(topic, name) + "/secret"
        return str((yield from self._post_once(path, None))["secret"])

    @driven
    def confirm_subscription(self, topic: str, name: str, token: str | None = None) -> Steps[None]:
        """Confirms an endpoint by its token. Without a token, sends the endpoint a new one."""
        body = {} if token is None else {"token": token}
        yield from self._post_once(subscription_path(topic, name) + "/confirm", body)


def _grant(topic: str, account: str) -> str:
    return f"{topic_path(topic)}/grants/{part(account)}"


def _published(reply: Reply) -> list[Published]:
    return [
        Published(entry["id"], entry["matched"], entry["sent_at"])
        for entry in reply.json["messages"]
    ]
