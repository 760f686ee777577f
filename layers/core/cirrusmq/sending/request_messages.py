"""A batch of messages, its id and its duplicates: shared by sending and publishing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import BatchTooLarge
from cirrusmq.model.envelope import Described
from cirrusmq.model.message import (
    CONTRACT,
    ContentLimits,
    Message,
    MessageInput,
    read_attributes,
    read_body,
    read_tags,
)
from cirrusmq.model.parcel import message_id
from cirrusmq.runtime.core import Core
from cirrusmq.sending.deduplication import Duplicate, Stored

A = TypeVar("A")
Key: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=128, description="a text of 1 to 128 characters")
]


NO_TRACE: Mapping[str, str] = MappingProxyType({})


class BatchMessage(MessageInput, forbid_unknown_fields=True, frozen=True):
    """A message of a batch."""

    group: Key | UnsetType = UNSET
    deduplication_id: Key | UnsetType = UNSET


def read_contents(
    given: Sequence[BatchMessage],
    max_bytes: int,
    limit: ContentLimits = CONTRACT,
    trace: Mapping[str, str] = NO_TRACE,
) -> list[Message]:
    """Returns the messages of a batch, checked. `limit`: limits for attributes and tags of each.

    trace: a trace context for messages that have none. It is no part of the request, so that a
    repetition of an `attempt` may have another one: the first one's is stored.
    """
    if len(given) > limits.BATCH_MESSAGES:
        raise BatchTooLarge(f"a batch has 1 to {limits.BATCH_MESSAGES} messages")
    contents = []
    for number, message in enumerate(given):
        contents.append(read_content(message, message.group, f"messages[{number}]", limit))
    total = sum(message.size_bytes for message in contents)
    if total > max_bytes:
        raise BatchTooLarge(f"the batch has {total} bytes; at most {max_bytes} are taken")
    of_attributes = sum(message.attributes_bytes for message in contents if message.attributes)
    if of_attributes > limits.ATTRIBUTES_BYTES:
        raise BatchTooLarge(
            f"the attributes of the batch have {of_attributes} bytes; at most"
            f" {limits.ATTRIBUTES_BYTES} are taken"
        )
    if not trace:
        return contents
    # Few callers send one: the others' cold starts do without.
    from cirrusmq.model.trace_context import with_context

    return with_context(contents, trace, max_bytes)


def read_content(
    given: MessageInput, group: str | UnsetType, where: str, limit: ContentLimits = CONTRACT
) -> Message:
    """Returns a message of a request, checked. `where`: its place there."""
    return Message(
        body=read_body(given, where),
        attributes=read_attributes(given.attributes, where, limit),
        tags=read_tags(given.tags, where, limit),
        group=None if isinstance(group, UnsetType) else group,
    )


def deduplication_key(given: BatchMessage) -> str | None:
    """The message's deduplication id, if it has one."""
    key = given.deduplication_id
    return None if isinstance(key, UnsetType) else key


def new_send_id(core: Core, begun_ms: int) -> str:
    """The id of a send: a ULID."""
    return ulid.encode(begun_ms, core.random_bytes(ulid.ENTROPY_BYTES))


def repeatable_send_ids(
    account: str, target_id: str, request: object, begun_ms: int
) -> Iterator[str]:
    """Ids for a send with an `attempt`: the same ones for every repetition of the same request.

    Callers that need a particular partition take the first id that falls into it, others the first.
    """
    canonical = msgspec.json.encode(request, order="deterministic")
    digest = hashlib.sha256(f"{account}\n{target_id}\n".encode() + canonical).digest()
    while True:
        yield ulid.encode(begun_ms, digest[: ulid.ENTROPY_BYTES])
        digest = hashlib.sha256(digest).digest()


def stored(
    send_id: str,
    contents: Mapping[int, Described],
    sent_ms: int,
    orders: Mapping[int, int] = MappingProxyType({}),
) -> dict[int, Stored]:
    """Returns the messages of a send as its caller sees them, by their indexes in the request.

    `orders`: their numbers, in an ordered queue.

    A message's id has its place there, also if other messages are refused: a repetition of the same
    request may leave out others than the first try.
    """
    return {
        index: Stored(
            id=message_id(send_id, index),
            body_md5=message.body_md5,
            sent_ms=sent_ms,
            order=orders.get(index),
        )
        for index, message in contents.items()
    }


def store_once(
    keys: Mapping[int, str | None], store: Callable[[Sequence[int]], Mapping[int, A]]
) -> tuple[dict[int, A], dict[int, A | Stored]]:
    """Stores messages, of which some are duplicates by their deduplication ids.

    `keys` has the id, or None, of each message by its index in the request. `store` takes the
    places of the messages that are no duplicates as far as known, and returns an answer for each.
    It raises Duplicate if the store has others of these ids.

    Returns the answers of `store`, and for each duplicate the answer of the first message with its
    id.
    """
    known: dict[str, A | Stored] = {}
    while True:
        fresh = without_duplicates(keys, known)
        try:
            answers = dict(store(fresh)) if fresh else {}
        except Duplicate as duplicate:
            known |= duplicate.found
        else:
            break
    known |= {key: answers[index] for index in fresh if (key := keys[index]) is not None}
    return answers, {
        index: known[key] for index, key in keys.items() if key is not None and index not in answers
    }


def without_duplicates(keys: Mapping[int, str | None], known: Iterable[str]) -> list[int]:
    """Returns the places of the first message with each unknown id, and of messages without one."""
    seen = set(known)
    fresh = []
    for index, key in keys.items():
        if key is None or key not in seen:
            fresh.append(index)
        if key is not None:
            seen.add(key)
    return fresh
