"""The function that gets messages, in answers."""

from __future__ import annotations

from cirrusmq.model.invoke import EventSource
from cirrusmq_lambda.answers.body import Body


class Invoke(Body):
    """A function that is called with batches of messages, and within which bounds."""

    function: str
    max_concurrency: int
    batch: int
    timeout_seconds: int
    event_source: EventSource
