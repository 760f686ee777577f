"""The topic that a caller names, and its permission there.

publish                     publish
subscribe                   make subscriptions; change, read and delete those it made; the log
publish_subscribe           both
info                        attributes, counts and subscriptions, traces
admin                       info; attributes, every subscription, grants
full                        all of them; deleting the topic is its owner's alone
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from cirrusmq.access.grants import TopicGrant, TopicPermission, granted, in_force
from cirrusmq.access.keys import Caller
from cirrusmq.base.errors import Forbidden
from cirrusmq.base.names import parse_topic_ref
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.runtime.core import Core
from cirrusmq.storage.directory import topic_granted_key
from cirrusmq.subscriptions.topics import get_topic

TopicNeed: TypeAlias = Literal["publish", "subscribe", "info", "admin", "own"]

_ALL: frozenset[TopicNeed] = frozenset({"publish", "subscribe", "info", "admin", "own"})
_ALLOWS: dict[TopicPermission, frozenset[TopicNeed]] = {
    "publish": frozenset({"publish"}),
    "subscribe": frozenset({"subscribe"}),
    "publish_subscribe": frozenset({"publish", "subscribe"}),
    "info": frozenset({"info"}),
    "admin": frozenset({"info", "admin"}),
    "full": frozenset({"publish", "subscribe", "info", "admin"}),
}


class TopicAccess(NamedTuple):
    """A topic as a caller named it, and what the caller may do there."""

    ref: str
    account: str
    name: str
    caller: str
    allowed: frozenset[TopicNeed]

    def require(self, *needs: TopicNeed) -> None:
        """Raises Forbidden unless one of the needs is allowed."""
        if self.allowed.isdisjoint(needs):
            raise _forbidden(self.caller, self.ref)

    def require_subscription(self, subscription: Subscription, *needs: TopicNeed) -> None:
        """As `require`; `subscribe` covers the subscriptions that the caller's account made."""
        if not self.allowed.isdisjoint(set(needs) - {"subscribe"}):
            return
        self.require("subscribe")
        if self.caller not in (self.account, subscription.made_by):
            raise _forbidden(self.caller, self.ref)


def reach(core: Core, caller: Caller, ref: str) -> TopicAccess:
    """The topic that the caller names `ref`.

    Raises Forbidden for another account's topic without a grant, whether it exists or not.
    """
    account, name = parse_topic_ref(ref, caller.account)
    if account == caller.account:
        return TopicAccess(ref, account, name, caller.account, _ALL)
    grant = granted(core, topic_granted_key(caller.account, account, name), TopicGrant)
    if grant is None or not in_force(core, grant):
        raise _forbidden(caller.account, ref)
    return TopicAccess(ref, account, name, caller.account, _ALLOWS[grant.permission])


def find_topic(core: Core, caller: Caller, ref: str, *needs: TopicNeed) -> Topic:
    """The topic that the caller names `ref`, if it may do one of `needs` there."""
    reached = reach(core, caller, ref)
    reached.require(*needs)
    return get_topic(core, reached.account, reached.name)


def _forbidden(account: str, ref: str) -> Forbidden:
    return Forbidden(f"account {account} has no grant for this on {ref}")
