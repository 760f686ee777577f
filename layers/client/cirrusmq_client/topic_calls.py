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
    """Topics and subscriptions. Errors are those of the contract, by their codes."""

    @driven
    def create_topic(
        self, name: str, attributes: TopicInput = _DEFAULTS, *, exact: bool = False
    ) -> Steps[TopicAttributes]:
        """Make a topic, or find one with these attributes; as `create_queue`."""
        path = topic_path(name)
        return cast(TopicAttributes, (yield from self._put(path, attributes or {}, exact=exact)))

    @driven
    def change_topic(self, name: str, attributes: TopicInput) -> Steps[TopicAttributes]:
        """Change some attributes."""
        return cast(TopicAttributes, (yield from self._patch(topic_path(name), attributes)))

    @driven
    def show_topic(self, name: str) -> Steps[TopicWithCounts]:
        """A topic's attributes and `counts`."""
        return cast(TopicWithCounts, (yield from self._get(topic_path(name))))

    @listed
    def list_topics(self, prefix: str | None = None) -> Entries[TopicAttributes]:
        """The account's topics, by name."""
        return self._pages("/topics", "topics", prefix=prefix)

    @driven
    def delete_topic(self, name: str) -> Steps[None]:
        """Delete a topic and its subscriptions."""
        yield from self._delete(topic_path(name), TopicNotFound)

    @driven
    def publish(self, topic: str, messages: Sequence[Message]) -> Steps[list[Published]]:
        """Publish at most 16 messages at once; a lost answer is asked for again, safely."""
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
        """Store at most 16 messages that nobody sees before `commit`; answers their handle.

        From `check_after_seconds` on, producers of the `group` are asked for the decision by
        `receive_undecided`; nobody having decided after `max_checks` of them, they are rolled back.
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
        """Publish what was prepared; a repetition gets the same answer.

        Conflict where it was rolled back.
        """
        path = topic_path(topic) + "/half/commit"
        return _published((yield from self._call("POST", path, {"handle": handle})))

    @driven
    def roll_back(self, topic: str, handle: str) -> Steps[None]:
        """Drop what was prepared; a repetition changes nothing. Conflict where it was committed."""
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
        """What producers of the group prepared and did not decide in time, to be decided now.

        Nobody else is asked for so many seconds. A lost answer counts as a check.
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
            # Logs are in the order of attempts: a second of doubt would mix up what follows.
            yield from self._learn_time()
        reply: Reply = yield from self._with_attempt(
            lambda attempt: self._call("POST", path, {**body, "attempt": attempt})
        )
        return reply

    @driven
    def match(self, topic: str, messages: Sequence[Message]) -> Steps[list[MatchedMessage]]:
        """The subscriptions that would get each of at most 16 messages; none is published."""
        body = {"messages": all_json(messages)}
        reply = yield from self._post_safely(topic_path(topic) + "/match", body)
        return list(reply["messages"])

    @driven
    def try_filter(
        self, topic: str, filter: Attributes | None, messages: Sequence[Message]
    ) -> Steps[list[MatchedMessage]]:
        """Whether a filter would let each of at most 16 messages pass, and why not; nothing is
        kept.

        InvalidFilter where a subscription could not have it.
        """
        body = {
            "messages": all_json(messages),
            "filter": filter,
        }
        reply = yield from self._post_safely(topic_path(topic) + "/match", body)
        return list(reply["messages"])

    @driven
    def trace(self, topic: str, message_id: str, *, body: bool = False) -> Steps[MessageTrace]:
        """The delivery state of a published message at each subscription; its body if wanted.

        Of a URL the latest attempts are in `history`, each with its own error.
        """
        path = f"{topic_path(topic)}/messages/{part(message_id)}"
        return cast(MessageTrace, (yield from self._get(path, body="true" if body else None)))

    @driven
    def read_log(
        self, source: str | Subscription, after: str | None = None, limit: int = 16
    ) -> Steps[tuple[list[Received], str]]:
        """At most 100 messages of a log in order, and the cursor to continue from.

        The log of a topic, or the part of it that a broadcasting subscription selects; `after` is a
        time or a cursor.
        """
        log = source if isinstance(source, Subscription) else Topic(source)
        page = yield from self._get(log.path + "/messages", after=after, limit=limit)
        messages = [Received(message, str(log)) for message in page["messages"]]
        return messages, str(page["cursor"])

    @driven
    def create_subscription(
        self, topic: str, name: str, attributes: SubscriptionInput, *, exact: bool = False
    ) -> Steps[NewSubscription]:
        """Subscribe, or find a subscription with these attributes; as `create_queue`.

        A new one of protocol `http` is answered with the `secret` of its signatures.
        """
        path = subscription_path(topic, name)
        return cast(NewSubscription, (yield from self._put(path, attributes, exact=exact)))

    @driven
    def change_subscription(
        self, topic: str, name: str, attributes: SubscriptionInput
    ) -> Steps[SubscriptionAttributes]:
        """Change some attributes."""
        return cast(
            SubscriptionAttributes,
            (yield from self._patch(subscription_path(topic, name), attributes)),
        )

    @driven
    def show_subscription(self, topic: str, name: str) -> Steps[SubscriptionWithState]:
        """A subscription's attributes, `counts` and state."""
        return cast(SubscriptionWithState, (yield from self._get(subscription_path(topic, name))))

    @listed
    def list_subscriptions(self, topic: str) -> Entries[SubscriptionAttributes]:
        """A topic's subscriptions."""
        return self._pages(topic_path(topic) + "/subscriptions", "subscriptions")

    @driven
    def rewind_subscription(self, topic: str, name: str, to: datetime | str) -> Steps[str]:
        """Give a group everything published at or after a time once more; the operation's id."""
        path = subscription_path(topic, name) + "/rewind"
        return str((yield from self._post_once(path, {"to": to_text(to)}))["operation"])

    @driven
    def redeliver(self, topic: str, name: str, *message_ids: str) -> Steps[str]:
        """Deliver messages of the last day to a URL or a group once more; the operation's id.

        At most 100. MessageNotFound, Conflict where one is on its way there already.
        """
        path = subscription_path(topic, name) + "/redeliver"
        return str((yield from self._post_once(path, {"ids": list(message_ids)}))["operation"])

    @driven
    def delete_subscription(self, topic: str, name: str) -> Steps[None]:
        """Delete a subscription."""
        yield from self._delete(subscription_path(topic, name), SubscriptionNotFound)

    @driven
    def pause_subscription(self, topic: str, name: str) -> Steps[SubscriptionAttributes]:
        """Have a URL's or a group's messages wait, within their lives, until it is resumed."""
        path = subscription_path(topic, name) + "/pause"
        return cast(SubscriptionAttributes, (yield from self._post_safely(path, {})))

    @driven
    def resume_subscription(self, topic: str, name: str) -> Steps[SubscriptionAttributes]:
        """End a pause, beginning with what waits."""
        path = subscription_path(topic, name) + "/resume"
        return cast(SubscriptionAttributes, (yield from self._post_safely(path, {})))

    @driven
    def retry_now(self, topic: str, name: str) -> Steps[None]:
        """Have a URL's messages that wait for their retry posted now, each once."""
        yield from self._post_once(subscription_path(topic, name) + "/retry", {})

    @driven
    def put_topic_grant(self, topic: str, account: str, permission: str) -> Steps[TopicGrantState]:
        """Let another account `publish`, `subscribe`, `publish_subscribe`, `info`, `admin`, `full`.

        It names the topic `account:topic`.
        """
        body = {"permission": permission}
        return cast(TopicGrantState, (yield from self._put(_grant(topic, account), body)))

    @driven
    def show_topic_grant(self, topic: str, account: str) -> Steps[TopicGrantState]:
        """Another account's permission; GrantNotFound."""
        return cast(TopicGrantState, (yield from self._get(_grant(topic, account))))

    @driven
    def list_topic_grants(self, topic: str) -> Steps[list[TopicGrantState]]:
        """All grants on a topic."""
        return (yield from self._all(topic_path(topic) + "/grants", "grants"))

    @driven
    def delete_topic_grant(self, topic: str, account: str) -> Steps[None]:
        """Take a grant back; subscriptions that the account made are still there."""
        yield from self._delete(_grant(topic, account), GrantNotFound)

    @driven
    def show_signing_secret(self, topic: str, name: str) -> Steps[str]:
        """The secret that signs what a URL gets: a new one since the deployment's turned over."""
        path = subscription_path(topic, name) + "/secret"
        return str((yield from self._post_once(path, None))["secret"])

    @driven
    def confirm_subscription(self, topic: str, name: str, token: str | None = None) -> Steps[None]:
        """Confirm an endpoint with its token; its owner, without one, has a new one sent."""
        body = {} if token is None else {"token": token}
        yield from self._post_once(subscription_path(topic, name) + "/confirm", body)


def _grant(topic: str, account: str) -> str:
    return f"{topic_path(topic)}/grants/{part(account)}"


def _published(reply: Reply) -> list[Published]:
    return [
        Published(entry["id"], entry["matched"], entry["sent_at"])
        for entry in reply.json["messages"]
    ]
