"""Calls that end messages, hold them, or make dead letters of them.

A handle that ran out, or is another queue's, is no error: the message is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.limits import BATCH_MESSAGES
from cirrusmq.base.shapes import read_values
from cirrusmq.queues.receivers import source_with_id
from cirrusmq.settlement.delete import delete_what_can_be
from cirrusmq.settlement.settle import SourceOf
from cirrusmq_dialects.emq.asking import RECEIVE, Asked, handle, integer
from cirrusmq_dialects.emq.attributes import RECEIVES
from cirrusmq_dialects.emq.errors import invalid, of_contract, shown
from cirrusmq_dialects.emq.structs import of

_HOLD = (0, 43_200)
Results: TypeAlias = Mapping[str, "CirrusMQError | int"]
Act: TypeAlias = Callable[[Asked, Sequence[Any], SourceOf], Results]


def settle_one(asked: Asked) -> None:
    """Ends a message, hides it for a time from now on (0 ends that), or makes it a dead letter."""
    (result,) = _settle(asked, [asked.request]).values()
    if isinstance(result, CirrusMQError) and result.code != "ReceiptExpired":
        raise result


def settle_many(asked: Asked) -> Any:
    """Does what `settle_one` does with several messages, each separately."""
    entries = asked.entries("receiptHandle", RECEIVES[1])
    done, failed = list[str](), list[Any]()
    for text, result in _settle(asked, entries).items():
        if isinstance(result, CirrusMQError) and result.code != "ReceiptExpired":
            reason = shown(of_contract(result), asked.call.id)
            failed.append(of.Failed(id=text, reason=reason))
        else:
            done.append(text)
    return of.Settled(successful=done, failed=failed)


def _settle(asked: Asked, entries: Sequence[Any]) -> Results:
    """Settles messages, 16 at a time; everything that can be refused is refused before."""
    method, queue = asked.progress.action, asked.queue(RECEIVE)
    act = next(each for name, each in _ACTS.items() if method.startswith(name))
    for each in entries:
        handle(each.receiptHandle)
        if act is _change:
            integer("invisibilitySeconds", _seconds(each), _HOLD)
    results: dict[str, CirrusMQError | int] = {}
    for first in range(0, len(entries), BATCH_MESSAGES):
        some = entries[first : first + BATCH_MESSAGES]
        results |= act(asked, some, lambda source_id: source_with_id(asked.core, queue, source_id))
    return results


def _delete(asked: Asked, entries: Sequence[Any], source_of: SourceOf) -> Results:
    return delete_what_can_be(asked.core, [each.receiptHandle for each in entries], source_of)


def _change(asked: Asked, entries: Sequence[Any], source_of: SourceOf) -> Results:
    # Deletes are the most of these calls: their cold starts do without.
    from cirrusmq.settlement.visibility import VisibilityRequest, change_visibility

    held = [
        {"receipt": each.receiptHandle, "visibility_timeout_seconds": _seconds(each)}
        for each in entries
    ]
    return change_visibility(
        asked.core, read_values({"entries": held}, VisibilityRequest), source_of
    )


def _dead(asked: Asked, entries: Sequence[Any], source_of: SourceOf) -> Results:
    from cirrusmq.settlement.dead_letter import DeadLetterRequest, dead_letter

    receipts = [each.receiptHandle for each in entries]
    request = read_values({"receipts": receipts}, DeadLetterRequest)
    return dead_letter(asked.core, request, source_of)


def _seconds(entry: Any) -> int:
    if entry.invisibilitySeconds is None:
        raise invalid("invisibilitySeconds", "is needed")
    return int(entry.invisibilitySeconds)


_ACTS: Mapping[str, Act] = {"delete": _delete, "change": _change, "dead": _dead}
"""By the beginning of a method's name."""
