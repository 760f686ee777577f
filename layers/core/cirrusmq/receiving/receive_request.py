"""The request of a receive, and a message that it returns."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, UnsetType

from cirrusmq.base import limits
from cirrusmq.base.shapes import integer
from cirrusmq.model.message import Base64, Message
from cirrusmq.model.parcel import Parcel
from cirrusmq.settlement.settle import ReceiptText


class Where(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The attribute that a message must have to be received."""

    name: Annotated[
        str, Meta(min_length=1, max_length=256, description="a text of 1 to 256 characters")
    ]
    value: str | Base64


class ReceiveRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a receive."""

    max: Annotated[int, Meta(ge=1, le=16, description="an integer from 1 to 16")] = 1
    wait_seconds: (
        Annotated[float, Meta(ge=0, le=30, description="a number from 0 to 30 seconds")] | UnsetType
    ) = msgspec.UNSET
    visibility_timeout_seconds: (
        Annotated[int, integer(limits.VISIBILITY_SECONDS, " seconds")] | UnsetType
    ) = msgspec.UNSET
    receiver: str | UnsetType = msgspec.UNSET
    group: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=128,
                description="a text of 1 to 128 characters: only messages of this group, in an "
                "ordered or a fair queue",
            ),
        ]
        | UnsetType
    ) = msgspec.UNSET
    where: Where | UnsetType = msgspec.UNSET
    after: (
        Annotated[str, Meta(max_length=1_024, description="the after of the call before")]
        | UnsetType
    ) = msgspec.UNSET
    attempt: str | UnsetType = msgspec.UNSET
    repeat: bool = False
    delete: Annotated[
        list[ReceiptText],
        Meta(description="an array of at most 16 receipts, whose messages are deleted first"),
    ] = []


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A message that its receiver now holds."""

    parcel: Parcel
    index: int
    receipt: str
    message: Message
