"""What sending to a queue and publishing to a topic share: the batch, its id, its duplicates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import BatchTooLarge
from cirrusmq.model.message import Message, MessageInput, read_attributes, read_body, read_tags
from cirrusmq.model.parcel import message_id
from cirrusmq.runtime.core import Core
from cirrusmq.sending.deduplication import Duplicate, Stored

Key: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=128, description="a text of 1 to 128 characters")
]


class BatchMessage(MessageInput, forbid_unknown_fields=True, frozen=True):
    """A message of a batch."""

    group: Key | UnsetType = UNSET
    deduplication_id: Key | UnsetType = UNSET


def read_contents(given: Sequence[BatchMessage]) -> list[Message]:
    """The messages of a batch, its count and total checked."""
    if len(given) > limits.BATCH_MESSAGES:
        raise BatchTooLarge(f"a batch has 1 to {limits.BATCH_MESSAGES} messages")
    contents = []
    for number, message in enumerate(given):
        where = f"messages[{number}]"
        contents.append(
            Message(
                body=read_body(message, where),
                attributes=read_attributes(message.attributes, where),
                tags=read_tags(message.tags, where),
                group=None if isinstance(message.group, UnsetType) else message.group,
            )
        )
    total = sum(message.size_bytes for message in contents)
    if total > limits.BATCH_BYTES:
        raise BatchTooLarge(f"the batch has {total} bytes; at most {limits.BATCH_BYTES} are taken")
    return contents


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

    Who needs an id with some quality takes the first that has it, others the first.
    """
    canonical = msgspec.json.encode(request, order="deterministic")
    digest = hashlib.sha256(f"{account}\n{target_id}\n".encode() + canonical).digest()
    while True:
        yield ulid.encode(begun_ms, digest[: ulid.ENTROPY_BYTES])
        digest = hashlib.sha256(digest).digest()


def stored(send_id: str, contents: Mapping[int, Message], sent_ms: int) -> list[Stored]:
    """What the sender learns of stored messages, given by their places in the request.

    A message's id says its place there, whatever became of the others: when the same request is
    repeated, others may be left out than at first.
    """
    return [
        Stored(id=message_id(send_id, place), body_md5=message.body_md5, sent_ms=sent_ms)
        for place, message in contents.items()
    ]


def store_once(
    keys: Sequence[str | None], store: Callable[[Sequence[int]], Sequence[Stored]]
) -> list[Stored]:
    """Have messages stored of which some are duplicates by their deduplication ids.

    `store` is given the numbers of those that are none as far as known; it raises Duplicate where
    the store knows better. A duplicate answers what the first one was answered.
    """
    known: dict[str, Stored] = {}
    while True:
        fresh, seen = [], set(known)
        for number, key in enumerate(keys):
            if key is None or key not in seen:
                fresh.append(number)
                seen.add(key or "")
        try:
            answers = iter(store(fresh) if fresh else ())
        except Duplicate as duplicate:
            known |= duplicate.found
            continue
        break
    results = []
    for key in keys:
        result = known[key] if key is not None and key in known else next(answers)
        if key is not None:
            known[key] = result
        results.append(result)
    return results
