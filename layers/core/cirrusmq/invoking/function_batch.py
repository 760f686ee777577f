"""One batch: claimed for as long as its call may take, handed over, and settled by the answer.

    claims ──── calls the function ───────────── deletes what succeeded, gives back what failed
    lease  [ the function's timeout                                  + a margin ]

If the answer is lost the call may still run. Its worker waits for the function's timeout, so that
no other worker takes its slot, and nothing is settled: its leases end.
"""

from __future__ import annotations

import contextlib
import logging
import math
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from cirrusmq.access.keys import Caller
from cirrusmq.base import limits
from cirrusmq.base.errors import MessageTooLarge, Unavailable
from cirrusmq.invoking.function_records import InvocationOutcome, event_of, outcome_of
from cirrusmq.model.invoke import Invoke
from cirrusmq.model.source import Source
from cirrusmq.receiving.receive import receive
from cirrusmq.receiving.receive_request import Received, ReceiveRequest
from cirrusmq.runtime.core import Called, Core
from cirrusmq.settlement.delete import DeleteRequest, delete
from cirrusmq.settlement.settle import SourceOf
from cirrusmq.settlement.visibility import GiveBackRequest, give_back
from cirrusmq.subscriptions.sources import present_source

LEASE_MARGIN_SECONDS = 10
"""Seconds of a lease beyond a call, for settling its messages; a slot lasts longer still."""
SPARE_SECONDS = 5
"""Seconds of the margin that are left when a call begins: claiming may have taken the rest."""
_BY_ITSELF = "by its own answer"
"""The error of messages that a function names in its answer."""
_KEY_ID = "invoke"
_logger = logging.getLogger(__name__)


class InvokedBatch(NamedTuple):
    """The outcome of a batch.

    `failed` and `succeeded` are numbers of messages that the function began.
    """

    due_ms: int | None = None
    """When the first message that is left can be received again; None if none is left."""
    left: frozenset[str] = frozenset()
    """Receipts of the messages that stay in the source."""
    refused: bool = False
    """True if the function did not run: a further batch would fare no better."""
    succeeded: int = 0
    failed: int = 0
    error: str | None = None
    """Why messages are left; None if none is."""


def claim_batch(core: Core, source: Source, invoke: Invoke, max_messages: int) -> list[Received]:
    """Claims messages until the function's call is surely over.

    Messages that no event can hold are passed over.
    """
    request = ReceiveRequest(
        max=max_messages,
        wait_seconds=0,
        visibility_timeout_seconds=_lease_seconds(core, invoke),
    )
    caller = Caller(account=source.account, key_id=_KEY_ID, admin=False)
    try:
        return receive(core, lambda: source, caller, request, 0, limits.CALLED_BYTES)
    except MessageTooLarge:
        return []


def hand_over(
    core: Core,
    source: Source,
    invoke: Invoke,
    arn: str,
    batch: list[Received],
    try_seconds: int | None = None,
) -> InvokedBatch:
    """Calls the function with a batch, and settles each message by its answer.

    try_seconds: for how long messages that are left are hidden, and their receives do not count:
    an open breaker tries them. Else None.
    """
    begun_ms = core.now_ms()
    called = core.call(arn, event_of(source, batch), invoke.timeout_seconds)
    outcome = _outcome(called, batch)
    left = outcome.failed | outcome.untried
    if left:
        _tell(source, invoke, called, outcome, len(batch))
    tried = InvokedBatch(
        due_ms=min(each.parcel.visible_ms[each.index] for each in batch) if left else None,
        left=left,
        refused=called.refused,
        succeeded=len(batch) - len(left),
        failed=len(outcome.failed),
        error=(called.error or _BY_ITSELF) if left else None,
    )
    if called.unknown:
        core.wait_until(begun_ms + int(invoke.timeout_seconds * 1000 * core.clock.scale))
        if try_seconds is None:
            return tried
    try:
        if receipts := [each.receipt for each in batch if each.receipt not in left]:
            delete(core, DeleteRequest(receipts=receipts), _source_of(core, source))
    except Unavailable:
        _logger.warning("messages of source %s stay held, though done", source.id)
    if not left:
        return tried
    with contextlib.suppress(Unavailable):
        due_ms = _give_back(core, source, batch, outcome, try_seconds)
        tried = tried._replace(due_ms=due_ms)
    return tried


def _outcome(called: Called, batch: list[Received]) -> InvocationOutcome:
    """Returns the outcome of a call: a function that did not run has tried nothing."""
    if called.error is None:
        return outcome_of(called.answer, batch)
    whole = frozenset(each.receipt for each in batch)
    return InvocationOutcome(untried=whole) if called.refused else InvocationOutcome(failed=whole)


def return_all(core: Core, source: Source, batch: list[Received]) -> None:
    """Gives a batch back that is not handed over: at once, and its receive does not count."""
    receipts = [each.receipt for each in batch]
    request = GiveBackRequest(receipts=receipts, delay_seconds=0, tried=False)
    try:
        give_back(core, request, _source_of(core, source))
    except Unavailable:
        _logger.warning("messages of source %s stay held, though not handed over", source.id)


def lease_exceeds_timeout(core: Core, invoke: Invoke, batch: list[Received]) -> bool:
    """Returns True if a call that begins now ends before any of a batch's leases does."""
    max_ms = (LEASE_MARGIN_SECONDS - SPARE_SECONDS) * 1000 * core.clock.scale
    until_ms = core.now_ms() + _lease_seconds(core, invoke) * 1000 - max_ms
    return all(
        each.parcel.visible_ms[each.index] >= min(until_ms, each.parcel.expires_ms)
        for each in batch
    )


def _lease_seconds(core: Core, invoke: Invoke) -> int:
    seconds = math.ceil((invoke.timeout_seconds + LEASE_MARGIN_SECONDS) * core.clock.scale)
    return min(seconds, limits.VISIBILITY_SECONDS[1])


def _give_back(
    core: Core,
    source: Source,
    batch: list[Received],
    outcome: InvocationOutcome,
    try_seconds: int | None,
) -> int | None:
    """Hides failed messages for the retry policy's wait, else for the visibility timeout.

    Messages that were not begun come again at once, behind the message that stopped them in their
    group. If a call began nothing they wait too: the next one would most likely do the same.
    """
    hidden_seconds = source.visibility_timeout_seconds
    idle = len(outcome.untried) == len(batch)
    requests: list[tuple[frozenset[str], int | UnsetType, bool]] = [
        (outcome.failed, UNSET if source.retry is not None else hidden_seconds, True),
        (outcome.untried, hidden_seconds if idle else 0, False),
    ]
    if try_seconds is not None:
        requests = [(outcome.failed | outcome.untried, try_seconds, False)]
    dues: list[int] = []
    for left, delay_seconds, tried in requests:
        if receipts := [each.receipt for each in batch if each.receipt in left]:
            request = GiveBackRequest(receipts=receipts, delay_seconds=delay_seconds, tried=tried)
            results = give_back(core, request, _source_of(core, source))
            dues += [due for due in results.values() if isinstance(due, int)]
    return min(dues, default=None)


def _source_of(core: Core, source: Source) -> SourceOf:
    """Returns a lookup of the source as it is now, since a call takes minutes."""
    present = present_source(core, source.id)
    sources = (*source.all, *(present.all if present is not None else ()))
    return {each.id: each for each in sources}.get


def _tell(
    source: Source, invoke: Invoke, called: Called, outcome: InvocationOutcome, of: int
) -> None:
    _logger.warning(
        "function %s failed %d and did not begin %d of %d messages of source %s: %s",
        *(invoke.function, len(outcome.failed), len(outcome.untried), of, source.id),
        called.error or _BY_ITSELF,
    )
