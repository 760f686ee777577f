"""Answers about the service itself."""

from __future__ import annotations

from typing import Literal

from cirrusmq_lambda.answers.body import Body, Time


class Health(Body):
    """That the service answers."""

    status: Literal["ok"]
    version: str
    time: Time
    time_scale: float
