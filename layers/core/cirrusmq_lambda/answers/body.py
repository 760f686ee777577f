"""The base of all answers' structs, their common types, and the problem."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

Time = Annotated[
    str,
    Meta(
        description="RFC 3339 in UTC with milliseconds",
        examples=["2026-11-20T08:00:00.123Z"],
        extra_json_schema={"format": "date-time"},
    ),
]
Id = Annotated[str, Meta(examples=["Msg-01M7XGA279E8FYRFWHK8M956SX0"])]
Cursor = Annotated[
    str, Meta(description="opaque: the cursor of the next page; absent at the end of a listing")
]


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON object of an answer, its fields in this order; UNSET ones are left out."""


class Problem(Body):
    """The reason of a refusal (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: Annotated[str, Meta(description="stable: for programs to decide by")]
    request_id: str
    parameter: Annotated[str, Meta(description="the value that is refused")] | UnsetType = UNSET
    cursor: (
        Annotated[
            str,
            Meta(description="of a log: to read on behind the message that no answer holds"),
        ]
        | UnsetType
    ) = UNSET
