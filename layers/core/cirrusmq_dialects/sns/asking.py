"""A request whose caller is known: its members, and the topics that they name."""

from __future__ import annotations

from typing import Any, TypeAlias

from cirrusmq.access.scopes import Right
from cirrusmq.access.topic_permissions import TopicAccess, TopicNeed, reach
from cirrusmq.model.notification import topic_arn
from cirrusmq.model.topic import Topic
from cirrusmq.subscriptions.topics import get_topic
from cirrusmq_dialects.asking import CallerAsked
from cirrusmq_dialects.sns.errors import missing
from cirrusmq_dialects.sns.names import topic_ref
from cirrusmq_dialects.sns.reading import Members, text

Result: TypeAlias = dict[str, Any] | None


class Asked(CallerAsked, frozen=True, kw_only=True):
    """A call with its caller and its parameters."""

    region: str
    """The region that the caller signs for, and finds in ARNs."""
    members: Members

    def reach(self, rights: tuple[Right, ...], parameter: str = "TopicArn") -> TopicAccess:
        """The topic in a parameter, which need not exist in the caller's own account."""
        arn = text(self.members, parameter)
        if arn is None:
            raise missing(parameter)
        return self.reach_named(topic_ref(parameter, arn, self.caller.account), rights)

    def reach_named(self, ref: str, rights: tuple[Right, ...]) -> TopicAccess:
        """As `reach`, of a topic as the core's callers name it."""
        self.caller.require(rights, "topics", ref)
        return reach(self.core, self.caller, ref)

    def topic(
        self, rights: tuple[Right, ...], *needs: TopicNeed, parameter: str = "TopicArn"
    ) -> Topic:
        """The topic in a parameter, if the caller has one of the rights, and a need, there."""
        found = self.reach(rights, parameter)
        found.require(*needs)
        return get_topic(self.core, found.account, found.name)

    def arn(self, topic: Topic) -> str:
        """The ARN of a topic."""
        return topic_arn(self.region, topic.account, topic.name)
