"""The service's health and its URLs in answers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from cirrusmq_lambda.answers.body import Body, Time


class Health(Body):
    """That the service answers."""

    status: Annotated[
        Literal["ok", "degraded"],
        Meta(description="`degraded`, on one machine: calls are served, and stored data was lost"),
    ]
    version: str
    time: Time
    time_scale: float
    detail: Annotated[str, Meta(description="why it is degraded, and what to do")] | UnsetType = (
        UNSET
    )


def _takes(calls: str) -> Meta:
    return Meta(description=f"takes {calls}", examples=["https://….lambda-url.eu-central-1.on.aws"])


class InProcess(Body):
    """The tables, for a client that calls them from its own process with its own AWS rights."""

    region: str
    directory: Annotated[str, Meta(description="the table of accounts and queues")]
    messages: Annotated[str, Meta(description="the table of messages")]
    account: Annotated[str, Meta(description="the account of the access key")]
    format: Annotated[int, Meta(ge=1, description="the highest format that is written")]


class Endpoints(Body):
    """Other ways for some calls: URLs, each with the same paths, and tables; empty without any."""

    send: Annotated[str, _takes("POST /queues/{queue}/messages")] | UnsetType = UNSET
    receive: Annotated[str, _takes("POST …/messages/receive and …/peek")] | UnsetType = UNSET
    delete: (
        Annotated[str, _takes("POST …/messages/delete, …/visibility, …/give-back, …/dead-letter")]
        | UnsetType
    ) = UNSET
    publish: Annotated[str, _takes("POST /topics/{topic}/messages")] | UnsetType = UNSET
    in_process: InProcess | UnsetType = UNSET
