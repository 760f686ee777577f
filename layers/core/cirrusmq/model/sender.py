"""The sender of a message, as its content has it.

sent by                          to a queue or topic with    `$from`
the account itself               sender: account             is left out: 0 bytes
another account, by a grant      sender: account             `<account>`
anybody                          sender: key                 `<account> <access key id>`

It stays in the content: copies of a topic, dead letters and redriven messages have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from cirrusmq.base.reserved_attributes import FROM
from cirrusmq.model.message import Message

SenderDetail: TypeAlias = Literal["account", "key"]
"""The detail in which messages name their sender."""


class Sender(msgspec.Struct, frozen=True):
    """An account, and the access key of it by which it sent."""

    account: str
    key_id: str | None = None


class _KeyHolder(Protocol):
    """The caller: an access key."""

    @property
    def account(self) -> str: ...
    @property
    def key_id(self) -> str | None: ...


class Onlooker(msgspec.Struct, frozen=True):
    """A caller who looks at messages of a queue or topic."""

    owner: str
    """The account of the queue or topic."""
    account: str
    """The account of the caller."""

    def sender_of(self, message: Message) -> Sender:
        """Returns the message's sender; its key only if the caller is of the same account."""
        sender = sender_of(message, self.owner)
        return sender if sender.account == self.account else Sender(sender.account)


def sender_of(message: Message, owner: str) -> Sender:
    """Returns who sent a message that is in a queue or topic of the account `owner`."""
    noted = message.attributes.get(FROM)
    if not isinstance(noted, str):
        return Sender(owner)
    account, _, key_id = noted.partition(" ")
    return Sender(account, key_id or None)


def with_sender(
    messages: Sequence[Message], sender: _KeyHolder, owner: str, detail: SenderDetail
) -> Sequence[Message]:
    """Returns the messages with their sender noted, if the account `owner` does not say it."""
    if detail == "key":
        noted = f"{sender.account} {sender.key_id}"
    elif sender.account != owner:
        noted = sender.account
    else:
        return messages
    return [replace(each, attributes={**each.attributes, FROM: noted}) for each in messages]
