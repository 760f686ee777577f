"""Replies to requests, as their senders see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base.timestamps import format_time
from cirrusmq_lambda.answers.body import Body, Time
from cirrusmq_lambda.answers.content import Bytes, fields_of

if TYPE_CHECKING:
    # Few messages ask for a reply: the cold starts of other calls do without.
    from cirrusmq.receiving.replies.items import RequestEnd


class GivenReply(Body, kw_only=True):
    """A reply as it was given: `body` as `body`, `body_base64` as `body_base64`."""

    body: str | UnsetType = UNSET
    body_base64: str | UnsetType = UNSET
    attributes: dict[str, str | Bytes]
    replied_at: Time


class AwaitedReply(Body):
    """The state of a request, for its sender."""

    state: Annotated[
        Literal["waiting", "replied", "timed_out"],
        Meta(description="`timed_out`: no reply came before the deadline, and none is taken now"),
    ]
    reply: GivenReply | UnsetType = UNSET

    @classmethod
    def of(cls, end: RequestEnd | None) -> Self:
        """Returns the answer for the end of a request, or None while there is none."""
        if end is None:
            return cls(state="waiting")
        if end.reply is None:
            return cls(state="timed_out")
        given = fields_of(end.reply)
        reply = GivenReply(
            body=given["body"],
            body_base64=given["body_base64"],
            attributes=given["attributes"],
            replied_at=format_time(end.written_ms),
        )
        return cls(state="replied", reply=reply)
