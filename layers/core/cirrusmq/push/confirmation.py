"""Posting a subscription's token to its endpoint, which confirms the subscription with it."""

from __future__ import annotations

from typing import Any

from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions.confirmations import signing_secrets
from cirrusmq.subscriptions.subscriptions import cached_subscriptions
from cirrusmq.webhooks import requests


def post_token(core: Core, given: dict[str, Any], request_id: str) -> None:
    """Post a subscription's token once; its owner can ask for another one."""
    for subscription in cached_subscriptions(core, given["topic_id"]):
        if subscription.name != given["subscription"] or subscription.endpoint is None:
            continue
        path = f"/topics/{subscription.topic}/subscriptions/{subscription.name}/confirm"
        headers, body = requests.confirmation(
            account=subscription.account,
            topic=subscription.topic,
            subscription=subscription.name,
            token=given["token"],
            confirm_url=core.settings.public_url + path,
            expires_ms=given["expires_ms"],
            secrets=signing_secrets(core, subscription.id),
            request_id=request_id,
            now_s=core.real_seconds(),
        )
        core.post(subscription.endpoint, headers, body)
