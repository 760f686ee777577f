"""Confirming that an endpoint wants its messages: a token is posted there and sent back.

A token names its account, since the sender of a confirmation has no key: `<account>.<random text>`.
"""

from __future__ import annotations

import hashlib
import hmac

import msgspec

from cirrusmq.base.errors import Forbidden, InvalidParameter, TopicNotFound
from cirrusmq.base.limits import TOKEN_SECONDS
from cirrusmq.base.names import SUBSCRIPTION_NAME, TOPIC_NAME, check_name
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.secret import derive
from cirrusmq.runtime.store import TransactionRefused
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import subscription_key, topic_key
from cirrusmq.storage.optimistic_locking import DirectoryChange, change
from cirrusmq.subscriptions.subscriptions import find_subscription
from cirrusmq.webhooks.requests import secret_of

_TOKEN_BITS = 192
AUTHENTICATE = "AuthenticateOnUnsubscribe"
"""Beside the attributes of a subscription of SNS's: unsigned calls may not end it."""


class ConfirmRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of `…/confirm`: the token; without one the owner asks for a new one."""

    token: str | None = None


def signing_secrets(core: Core, subscription_id: str) -> list[str]:
    """Returns the secrets that sign a subscription's posts: `whsec_` and base64 of 24 bytes each.

    They derive from the deployment's keys, so that they are stored nowhere; the secret of the key
    that signs now is the first.
    """
    keys = core.secret.accepted_keys()
    return [secret_of(derive(key, "webhook", subscription_id)) for key in keys]


def unsubscribe_token(core: Core, subscription: Subscription) -> str | None:
    """The token by which an unsigned call may end a subscription; None if none may.

    The account's own queues need no token: who subscribes one can end that, too.
    """
    if subscription.protocol != "http" or AUTHENTICATE in subscription.sdk:
        return None
    return _unsubscribe_token(core.secret.accepted_keys()[0], subscription)


def may_unsubscribe(core: Core, subscription: Subscription, token: str) -> bool:
    """Returns True if the token is the subscription's, by any key that is accepted."""
    if unsubscribe_token(core, subscription) is None:
        return False
    return any(
        hmac.compare_digest(token.encode(), _unsubscribe_token(key, subscription).encode())
        for key in core.secret.accepted_keys()
    )


def _unsubscribe_token(key: bytes, subscription: Subscription) -> str:
    return derive(key, "unsubscribe", subscription.id).hex()


def begin(core: Core, subscription: Subscription) -> tuple[Subscription, str | None]:
    """Returns a new subscription's first state: unconfirmed with a token, if it must confirm."""
    if subscription.protocol != "http" or not core.settings.confirm_endpoints:
        return subscription, None
    return _with_token(core, subscription)


def ask(core: Core, subscription: Subscription, token: str) -> None:
    """Has the token posted to the endpoint."""
    core.invoke(
        "push_slow",
        {
            "confirm": {
                "topic_id": subscription.topic_id,
                "subscription": subscription.name,
                "token": token,
                "expires_ms": subscription.token_expires_ms,
            }
        },
    )


def ask_again(core: Core, topic: Topic, name: str) -> None:
    """Posts a new token, on the owner's wish; does nothing for a confirmed subscription."""
    check_name("subscription", name, SUBSCRIPTION_NAME)
    asked = change(core, lambda: _asking(core, topic, name))
    if asked is not None:
        ask(core, *asked)


def _asking(
    core: Core, topic: Topic, name: str
) -> DirectoryChange[tuple[Subscription, str] | None]:
    key = subscription_key(topic.id, name)
    found = find_subscription(core, topic.id, name)
    if found.value.confirmed:
        return DirectoryChange(result=None)
    subscription, token = _with_token(core, found.value)
    return DirectoryChange(
        result=(subscription, token),
        writes=[directory_writes.put_over(core, key, subscription, found)],
        keys=[subscription_key(topic.id, "")],
    )


def confirm(
    core: Core, topic_name: str, name: str, token: str, *, authenticate: bool = False
) -> Subscription:
    """Takes a token back. Raises Forbidden if it is wrong, used or too old.

    Also if the path names an impossible resource: a caller without a key learns of none.
    authenticate: no unsigned call may end the subscription.
    """
    try:
        check_name("topic", topic_name, TOPIC_NAME)
        check_name("subscription", name, SUBSCRIPTION_NAME)
    except InvalidParameter as impossible:
        raise Forbidden from impossible
    account = token.partition(".")[0]
    topic = directory.read(core, topic_key(account, topic_name), Topic)
    if topic is None or topic.value.name != topic_name:
        raise Forbidden from TopicNotFound()
    key = subscription_key(topic.value.id, name)
    found = directory.read(core, key, Subscription)
    if (
        found is None
        or found.value.name != name
        or not has_token(found.value, token)
        or core.now_ms() >= found.value.token_expires_ms
    ):
        raise Forbidden("the token is wrong, used or too old")
    subscription = msgspec.structs.replace(
        found.value, confirmed=True, token_sha256=None, token_expires_ms=0
    )
    if authenticate:
        sdk = subscription.sdk | {AUTHENTICATE: "true"}
        subscription = msgspec.structs.replace(subscription, sdk=sdk)
    try:
        core.store.transact([directory_writes.put_over(core, key, subscription, found)])
    except TransactionRefused as refused:
        raise Forbidden("the token is wrong, used or too old") from refused
    core.cache.turn_over(subscription_key(topic.value.id, ""))
    return subscription


def has_token(subscription: Subscription, token: str) -> bool:
    """Returns True if the subscription waits for this token, which may be too old."""
    expected = subscription.token_sha256
    return expected is not None and hmac.compare_digest(_digest(token), expected)


def _with_token(core: Core, subscription: Subscription) -> tuple[Subscription, str]:
    token = f"{subscription.account}.{core.random.getrandbits(_TOKEN_BITS):048x}"
    pending = msgspec.structs.replace(
        subscription,
        confirmed=False,
        token_sha256=_digest(token),
        token_expires_ms=core.now_ms() + TOKEN_SECONDS * 1000,
    )
    return pending, token


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
