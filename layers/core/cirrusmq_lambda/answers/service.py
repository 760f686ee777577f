"""Answers about the service itself."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from cirrusmq_lambda.answers.body import Body, Time


class Health(Body):
    """That the service answers."""

    status: Literal["ok"]
    version: str
    time: Time
    time_scale: float


class Endpoints(Body):
    """URLs that take some calls beside this one, each with the same paths; empty without any."""

    send: str | UnsetType = UNSET
    """Takes `POST /queues/{queue}/messages`."""
    receive: str | UnsetType = UNSET
    """Takes `POST …/messages/receive` and `…/peek`, of queues and subscriptions."""
    delete: str | UnsetType = UNSET
    """Takes `POST …/messages/delete`, `…/visibility`, `…/give-back` and `…/dead-letter`."""
    publish: str | UnsetType = UNSET
    """Takes `POST /topics/{topic}/messages`."""
