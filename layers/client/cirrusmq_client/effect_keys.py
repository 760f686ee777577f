"""Names of the records of messages that have had their effect.

A name is made of the message's source and of the key by which the service knows the same message:
the message's id, or its deduplication id within five minutes, in which the service stores it once.

    orders   report, 10:00 ── stored        two names: both have their effect
             report, 10:06 ── stored
    orders   order-17 ──┬──── two names
    returns  order-17 ──┘

Names are digests, so that no collation of a database takes two of them for equal (`cart-a` and
`cart-A`), and so that they fit into a table that was made for ids.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

from cirrusmq_client.messages import Received
from cirrusmq_client.sources import Queue, Subscription

WINDOW_SECONDS = 300
"""Time within which the service stores messages with one deduplication id once."""
_ID = re.compile(r"Msg-([0-7][0-9A-HJKMNP-TV-Z]{9})[0-9A-HJKMNP-TV-Z]{16}[0-9A-F]", re.ASCII)
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class EffectKey(str):
    """The name of a message's record in a group of consumers."""

    __slots__ = ("message_id", "noted", "sent_seconds")

    message_id: str
    """The record's name in earlier releases, unless there was a `noted`."""
    noted: str | None
    sent_seconds: float | None

    def is_of(self, former: str, consumed_at: float) -> bool:
        """Returns True if a record by an earlier release is this message's.

        A record by deduplication id is another message's if this one was sent after its effect.
        """
        if former != self.noted:
            return former == self.message_id
        return self.sent_seconds is None or self.sent_seconds <= consumed_at + 1

    @property
    def former(self) -> list[str]:
        """Names that the record may have from earlier releases."""
        return [self.message_id] if self.noted is None else [self.message_id, self.noted]


def key_of(message: Received, group: str) -> EffectKey:
    """Returns the name of the message's record in a group of consumers."""
    sent_seconds = _sent_seconds(message)
    noted = message.deduplication_id
    # The window distinguishes two messages of one id: without a time, their own ids do.
    if noted is not None and sent_seconds is not None:
        parts = ["deduplication_id", noted, int(sent_seconds // WINDOW_SECONDS)]
    else:
        parts = ["id", message.id]
    text = json.dumps([group, _origin(message), *parts])
    key = EffectKey(hashlib.sha256(text.encode()).hexdigest())
    key.message_id, key.noted, key.sent_seconds = message.id, noted, sent_seconds
    return key


def former_names(keys: Iterable[str]) -> dict[str, list[EffectKey]]:
    """Returns keys by each name that their record may have from earlier releases."""
    names: dict[str, list[EffectKey]] = {}
    for key in keys:
        if isinstance(key, EffectKey):
            for name in key.former:
                names.setdefault(name, []).append(key)
    return names


def _origin(message: Received) -> str:
    """Returns the source; for a dead letter the source that gave it up, as it may have acted."""
    note = message.dead_letter
    if not note:
        return message.source
    name = str(note["source_queue"])
    if "subscription" in note:
        return str(Subscription(name, str(note["subscription"])))
    return str(Queue(name, note.get("receiver")))


def _sent_seconds(message: Received) -> float | None:
    """Returns the time of the send, by the id, so that it is equal after a move, or None."""
    match = _ID.fullmatch(message.id)
    if match is None:
        return message.sent_at.timestamp() if "sent_at" in message.json else None
    milliseconds = 0
    for digit in match[1]:
        milliseconds = 32 * milliseconds + _DIGITS.index(digit)
    return milliseconds / 1000
