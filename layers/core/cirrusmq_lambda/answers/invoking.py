"""The function that gets messages, and breakers, in answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta

from cirrusmq.base.timestamps import format_time
from cirrusmq.model.breaker import Circuit
from cirrusmq.model.invoke import EventSource
from cirrusmq_lambda.answers.body import Body


class Breaker(Body):
    """When it opens: in a minute 20 outcomes or more, and a share of them failed."""

    share: float


BreakerState: TypeAlias = Annotated[
    Literal["closed", "open"],
    Meta(description="with a breaker; open: one message at a time is tried"),
]
BreakerError: TypeAlias = Annotated[
    str, Meta(description="while open: why the newest message failed")
]


def breaker_fields(circuit: Circuit | None) -> dict[str, Any]:
    """Returns the fields of a breaker's state in an answer; none if there is no breaker."""
    if circuit is None:
        return {}
    if not circuit.is_open:
        return {"breaker_state": "closed"}
    return {
        "breaker_state": "open",
        "breaker_open_since": format_time(circuit.opened_ms),
        "breaker_error": circuit.error or UNSET,
    }


class Invoke(Body):
    """A function that is called with batches of messages, and within which bounds."""

    function: str
    max_concurrency: int
    batch: int
    timeout_seconds: int
    event_source: EventSource
    breaker: Annotated[Breaker | None, Meta(description="null: calls never stop")]
