"""Calls that end messages, or hide them for longer or shorter."""

from __future__ import annotations

from typing import Any, TypeAlias

from cirrusmq.base import limits
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.model import receipt as receipts
from cirrusmq.model.queue import Queue
from cirrusmq.queues.receivers import source_with_id
from cirrusmq.settlement.delete import delete_what_can_be
from cirrusmq.settlement.settle import SourceOf
from cirrusmq_dialects.asking import RECEIVE
from cirrusmq_dialects.messages import hide, source_of
from cirrusmq_dialects.sqs.asking import Asked
from cirrusmq_dialects.sqs.batches import batch, failure, read_each
from cirrusmq_dialects.sqs.errors import SqsError, invalid, missing, of_contract
from cirrusmq_dialects.sqs.reading import Members, entries, integer, needed_text

Result: TypeAlias = dict[str, Any]
VISIBILITY = (0, 43_200)
"""Seconds that a message may be hidden."""
_LEASE_SECONDS = 43_200


def delete_message(asked: Asked) -> Result:
    """Ends a message. It succeeds with a stale handle, too, which ends nothing."""
    queue = asked.find(RECEIVE)
    handle = _handle(asked.members)
    find = source_of(asked.core, queue)
    (result,) = delete_what_can_be(asked.core, [handle], find).values()
    _check_deleted(handle, result, find)
    return {}


def delete_message_batch(asked: Asked) -> Result:
    """Ends messages, each separately."""
    queue = asked.find(RECEIVE)
    listed = entries(asked.members, "DeleteMessageBatchRequestEntry")
    handles, failed = read_each(listed, _handle)
    results, find = {}, source_of(asked.core, queue)
    if handles:
        found = list(dict.fromkeys(handles.values()))
        results = delete_what_can_be(asked.core, found, find)
    done: list[Result] = []
    for name, handle in handles.items():
        try:
            _check_deleted(handle, results[handle], find)
        except CirrusMQError as error:
            failed.append(failure(name, of_contract(error)))
        except SqsError as error:
            failed.append(failure(name, error))
        else:
            done.append({"Id": name})
    return batch(done, failed)


def _check_deleted(handle: str, result: CirrusMQError | int, find: SourceOf) -> None:
    """Raises the error of a delete; a stale handle's is none.

    Raises SqsError if the handle is none of the queue, which is looked at last: few are.
    """
    if not isinstance(result, CirrusMQError):
        return
    if result.code != "ReceiptExpired":
        raise result
    receipt = receipts.decode(handle)
    if receipt is None or find(receipt.source_id) is None:
        raise _no_receipt(handle)


def change_message_visibility(asked: Asked) -> Result:
    """Hide a message for longer or shorter, from now on."""
    queue = asked.find(RECEIVE)
    handle, seconds = _handle(asked.members), _seconds(asked.members)
    _check_total(asked, queue, handle, seconds)
    (result,) = hide(asked.core, queue, {handle: seconds}).values()
    refusal = _refusal(handle, seconds, result)
    if refusal is not None:
        raise refusal
    return {}


def change_message_visibility_batch(asked: Asked) -> Result:
    """Changes the visibility timeout of messages, each separately."""
    queue = asked.find(RECEIVE)
    listed = entries(asked.members, "ChangeMessageVisibilityBatchRequestEntry")
    seconds, failed = read_each(listed, _seconds)

    def handle_of(entry: Members) -> str:
        handle = _handle(entry)
        _check_total(asked, queue, handle, seconds[entry["Id"]])
        return handle

    handles, unread = read_each([entry for entry in listed if entry["Id"] in seconds], handle_of)
    hidden = {held: seconds[name] for name, held in handles.items()}
    results = hide(asked.core, queue, hidden) if hidden else {}
    done: list[Result] = []
    for name, handle in handles.items():
        refusal = _refusal(handle, seconds[name], results[handle])
        if refusal is None:
            done.append({"Id": name})
        else:
            failed.append(failure(name, refusal))
    return batch(done, failed + unread)


def _refusal(handle: str, seconds: int, result: CirrusMQError | int) -> SqsError | None:
    """Returns the error of a visibility change, or None.

    SQS's own code for a message that is not held any more is InvalidParameterValue: its
    MessageNotInflight is documented and never sent. A handle that hides nothing has nothing to
    end, so that 0 seconds succeed, as for a call that is repeated.
    """
    if not isinstance(result, CirrusMQError):
        return None
    if result.code != "ReceiptExpired":
        return of_contract(result)
    if not seconds:
        return None
    reason = "Message does not exist or is not available for visibility timeout change."
    return invalid("ReceiptHandle", handle, reason)


def _check_total(asked: Asked, queue: Queue, handle: str, seconds: int) -> None:
    """Raises SqsError if a lease would end over 12 hours after the received one, or none exists.

    A handle contains the end of its first lease, not the start.
    """
    receipt = receipts.decode(handle)
    if receipt is None or source_with_id(asked.core, queue, receipt.source_id) is None:
        raise _no_receipt(handle)
    if not seconds:
        return
    end_ms = receipts.lease_end_ms(receipt.nonce)
    if asked.core.now_ms() + seconds * 1_000 > end_ms + _LEASE_SECONDS * 1_000:
        reason = f"Total VisibilityTimeout for the message is beyond the limit [{_LEASE_SECONDS}"
        raise invalid("VisibilityTimeout", seconds, f"{reason} seconds]")


def _handle(members: Members) -> str:
    """Returns the handle of a request or an entry. Raises SqsError if it cannot be a receipt."""
    handle = needed_text(members, "ReceiptHandle")
    if len(handle) > limits.RECEIPT_CHARACTERS:
        raise _no_receipt(handle)
    return handle


def _no_receipt(handle: str) -> SqsError:
    told = f'The input receipt handle "{handle[:200]}" is not a valid receipt handle.'
    return SqsError("ReceiptHandleIsInvalid", told)


def _seconds(members: Members) -> int:
    seconds = integer(members, "VisibilityTimeout", VISIBILITY)
    if seconds is None:
        raise missing("VisibilityTimeout")
    return seconds
