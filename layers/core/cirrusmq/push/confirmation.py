"""Posting a subscription's token to its endpoint, which confirms the subscription with it."""

from __future__ import annotations

from typing import Any

from cirrusmq.access import shares
from cirrusmq.model.topic import Subscription
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions.confirmations import signing_secrets
from cirrusmq.subscriptions.delivery.rules import POST_MS
from cirrusmq.subscriptions.subscriptions import cached_subscriptions
from cirrusmq.webhooks import requests

LATER_SECONDS = 15
"""Seconds until another invocation posts a token, if the account's share was in use."""


def post_token(core: Core, given: dict[str, Any], request_id: str) -> None:
    """Posts a subscription's token once; its owner can ask for another one.

    If the account has as many posts to slow URLs as it may, an execution waits and has the token
    posted then, unless it has expired.
    """
    for subscription in cached_subscriptions(core, given["topic_id"]):
        if subscription.name != given["subscription"] or subscription.endpoint is None:
            continue
        with shares.posting(core, subscription.account, POST_MS) as share:
            if share.admitted:
                _post(core, subscription, given, request_id)
            elif core.now_ms() < given["expires_ms"]:
                state = {"action": "wait", "wait_seconds": LATER_SECONDS, "confirm": given}
                core.start_execution(f"{subscription.id}-confirm-{core.now_ms()}", state)


def _post(core: Core, subscription: Subscription, given: dict[str, Any], request_id: str) -> None:
    assert subscription.endpoint is not None
    secrets, now_s = signing_secrets(core, subscription.id), core.real_seconds()
    if subscription.made_by_sns:
        # Few are: the cold starts of others do without.
        from cirrusmq.model.notification import own_part
        from cirrusmq.webhooks import sns_requests

        headers, body = sns_requests.confirmation(
            subscription,
            f"{own_part(subscription.name)}.{given['token']}",
            secrets=secrets,
            request_id=request_id,
            now_ms=core.now_ms(),
            now_s=now_s,
        )
    else:
        path = f"/topics/{subscription.topic}/subscriptions/{subscription.name}/confirm"
        headers, body = requests.confirmation(
            subscription,
            given["token"],
            confirm_url=core.settings.public_url + path,
            expires_ms=given["expires_ms"],
            secrets=secrets,
            request_id=request_id,
            now_s=now_s,
        )
    core.post(subscription.endpoint, headers, body)
