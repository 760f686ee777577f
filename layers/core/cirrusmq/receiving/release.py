"""Reading claimed messages, and undoing claims of messages that cannot be answered.

    the store     claimed: r = 1 ──> body refused ──> r = 0 again, free for the next receiver
    max_receives 1, without the undo:   r = 1 ──> lease over ──> a dead letter never received

The undo writes the state before the claim, if the claim is still the last change, so that no
other receiver ever sees it. If it is refused as well, the message stays held.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.message import Message
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.model.transitions import Changes, unclaimed, unread
from cirrusmq.receiving.claim import Claim
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.storage.bodies.contents import read_contents, read_what_can_be
from cirrusmq.storage.changes import as_read, change
from cirrusmq.storage.parcels import parcel_key

_logger = logging.getLogger(__name__)
Contents = dict[int, Message]
"""Messages by their indexes in a parcel."""


def read_claimed(core: Core, source: Source, claims: Sequence[Claim]) -> list[Contents]:
    """Returns for each claim the messages that can be answered, and undoes the other claims.

    Raises Unavailable if the store refused the bodies and no message is left to answer.
    """
    contents, refused = _read(core, source, claims)
    undone: list[tuple[Parcel, Changes]] = []
    broken: set[str] = set()
    for claim, messages in zip(claims, contents, strict=True):
        missing = [index for index in claim.indexes if index not in messages]
        behind = _behind(source, claim, messages, broken)
        for index in behind:
            del messages[index]
        if claim.before is not None and (missing or behind):
            # Another receiver may have the messages at once, unless their bodies are gone: these
            # stay hidden until the lease is over.
            undo, before, after = unclaimed if refused else unread, claim.before, claim.parcel
            changes = {index: unclaimed(before, after, index) for index in behind}
            changes |= {index: undo(before, after, index) for index in missing}
            undone.append((after, changes))
    list(core.in_parallel(lambda undo: _undo(core, *undo), undone))
    if refused is not None and not any(contents):
        raise refused
    return contents


def _read(
    core: Core, source: Source, claims: Sequence[Claim]
) -> tuple[list[Contents], Unavailable | None]:
    wanted = [(claim.parcel, claim.indexes) for claim in claims]
    refused: Unavailable | None
    try:
        contents, refused = read_what_can_be(core, source, wanted)
    except Unavailable as error:
        refused = error
        contents = [
            {} if parcel.content is None else read_contents(core, source, [(parcel, indexes)])[0]
            for parcel, indexes in wanted
        ]
    if refused is not None:
        _logger.warning("bodies of source %s could not be read: %r", source.id, refused.__cause__)
    return contents, refused


def _behind(source: Source, claim: Claim, messages: Contents, broken: set[str]) -> list[int]:
    """Returns indexes of an ordered source's messages behind one that cannot be answered."""
    if not source.ordered:
        return []
    group = claim.parcel.sort_key.partition("#")[0]
    behind = []
    for index in claim.indexes:
        if index not in messages:
            broken.add(group)
        elif group in broken:
            behind.append(index)
    return behind


def _undo(core: Core, after: Parcel, changes: Changes) -> None:
    still = as_read(after, changes, "nonces", "visible_ms")
    request = change(core.tables.messages, parcel_key(after), changes, still)
    try:
        core.store.write("UpdateItem", request)
    except ConditionFailed:
        return  # another receiver's by now, or undone by an earlier try of this very write
    except Unavailable:
        _logger.warning("messages of parcel %s stay held, unread", after.sort_key)
