"""Messages received, peeked at or looked up, in answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base.timestamps import format_time
from cirrusmq.model.message import Message
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.reply_note import reply_note
from cirrusmq.model.sender import Onlooker
from cirrusmq_lambda.answers.body import Body, Cursor, Id, Problem, Time
from cirrusmq_lambda.answers.content import Content
from cirrusmq_lambda.answers.receipts import Failure

if TYPE_CHECKING:
    # Few calls look a message up: the others' cold starts do without.
    from cirrusmq.receiving.lookup.find import Found


class DeadLetterNote(Body):
    """The source of a dead letter, and the reason."""

    source_queue: str
    receive_count: int
    dead_at: Time
    reason: Annotated[
        str,
        Meta(description="`max_receives`, `max_age`, `retries`, `expired`, or a consumer's text"),
    ]
    receiver: str | UnsetType = UNSET
    subscription: str | UnsetType = UNSET


def _note(parcel: Parcel) -> DeadLetterNote | UnsetType:
    """Returns the note of a dead letter's source, or UNSET."""
    noted = parcel.dead_letter
    if not noted:
        return UNSET
    return DeadLetterNote(**noted | {"dead_at": format_time(noted["dead_at"])})


def _reply_by(parcel: Parcel) -> Time | UnsetType:
    note = reply_note(parcel.others) if parcel.others else None
    return UNSET if note is None else format_time(note.due_ms)


class PeekedMessage(Content, kw_only=True):
    """A message in the state that was asked for, not claimed."""

    receive_count: int
    visible_at: Time
    expires_at: Time
    first_received_at: Time | UnsetType = UNSET
    dead_letter: DeadLetterNote | UnsetType = UNSET
    reply_by: (
        Annotated[Time, Meta(description="until when its sender waits for a reply, if it does")]
        | UnsetType
    ) = UNSET

    @classmethod
    def at(
        cls, parcel: Parcel, index: int, message: Message, seen_by: Onlooker, **more: Any
    ) -> Self:
        """Returns the answer for the message at an index of a parcel.

        `more`: further fields of a subclass.
        """
        first_ms = parcel.first_received_ms[index]
        return cls.of(
            message,
            parcel.message_id(index),
            parcel.sent_ms,
            seen_by,
            receive_count=parcel.tries(index),
            visible_at=format_time(parcel.visible_ms[index]),
            expires_at=format_time(parcel.expires_ms),
            first_received_at=format_time(first_ms) if first_ms else UNSET,
            dead_letter=_note(parcel),
            reply_by=_reply_by(parcel),
            **more,
        )


class MessageState(Body, kw_only=True):
    """The state of a message in a queue or in one of its receivers."""

    id: Id
    state: Literal["active", "inactive", "delayed"]
    sent_at: Time
    receive_count: int
    first_received_at: Time | UnsetType = UNSET
    visible_at: Annotated[Time, Meta(description="when it can be received, or since when")]
    expires_at: Time
    bytes: Annotated[int, Meta(description="of body, attributes and tags")]
    dead_letter: DeadLetterNote | UnsetType = UNSET

    @classmethod
    def of(cls, found: Found, **more: Any) -> Self:
        """Returns the answer of a look-up. `more`: further fields of a subclass."""
        parcel, index = found.parcel, found.index
        first_ms = parcel.first_received_ms[index]
        return cls(
            id=parcel.message_id(index),
            state=found.state,
            sent_at=format_time(parcel.sent_ms),
            receive_count=parcel.tries(index),
            first_received_at=format_time(first_ms) if first_ms else UNSET,
            visible_at=format_time(parcel.ready_ms(index)),
            expires_at=format_time(parcel.expires_ms),
            bytes=parcel.sizes[index],
            dead_letter=_note(parcel),
            **more,
        )


class FoundMessage(MessageState, kw_only=True):
    """A message that is in a queue or in one of its receivers."""

    message: (
        Annotated[Content, Meta(description="with `body=true`: as it was sent")] | UnsetType
    ) = UNSET
    others: (
        Annotated[
            list[MessageState],
            Meta(
                description="messages of the same id that are there too: dead "
                "letters of several receivers, or redriven"
            ),
        ]
        | UnsetType
    ) = UNSET

    @classmethod
    def found(cls, found: Found, seen_by: Onlooker) -> Self:
        """Returns the answer of a look-up, with other messages of the same id."""
        parcel, index, message = found.parcel, found.index, found.message
        content: Content | UnsetType = UNSET
        if message is not None:
            content = Content.of(message, parcel.message_id(index), parcel.sent_ms, seen_by)
        others = list(map(MessageState.of, found.others))
        return cls.of(found, message=content, others=others or UNSET)


class PeekedMessages(Body):
    """Messages of one state; none is claimed. A page may be empty and have a cursor."""

    messages: list[PeekedMessage]
    cursor: Cursor | UnsetType = UNSET


class ReceivedMessage(PeekedMessage, kw_only=True):
    """A message that the caller holds until `visible_at`."""

    receipt: Annotated[str, Meta(description="opaque: deletes the message, or changes its lease")]


class ReceivedMessages(Body):
    """Messages that the caller holds now; empty if there was none in time."""

    messages: list[ReceivedMessage]
    deleted: (
        Annotated[list[str], Meta(description="receipts of `delete` whose messages are deleted")]
        | UnsetType
    ) = UNSET
    failed: list[Failure] | UnsetType = UNSET
    paused: (
        Annotated[bool, Meta(description="true: nobody receives from it until it is resumed")]
        | UnsetType
    ) = UNSET
    seen_all: (
        Annotated[
            bool,
            Meta(
                description="with `where`: whether everything was looked at, by this call and "
                "those whose `after` it goes on behind"
            ),
        ]
        | UnsetType
    ) = UNSET
    after: (
        Annotated[str, Meta(description="with `where`: opaque, for the next call")] | UnsetType
    ) = UNSET
    error: (
        Annotated[Problem, Meta(description="after the deletes, why nothing could be received")]
        | UnsetType
    ) = UNSET
