"""Messages that no answer to a receive can hold: logged once, dead-lettered if nobody takes them.

    ready ── passed over: a line in the log ── 30 s: a receiver with gzip may come ── dead letter

The size of a message is known by a bound that its parcel keeps for all of its messages. One that is
large by that bound alone, since another message of its send is full of control characters, is
moved into a separate parcel with its exact bound; not in an order, where keys do not change.
"""

from __future__ import annotations

import logging

from msgspec.structs import replace

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.lifecycle.dead_letters.move import ask_for_queue, dead_letter_queue
from cirrusmq.lifecycle.rekey import rekey, rekeyed
from cirrusmq.lifecycle.transfer import move_to_queue
from cirrusmq.model.message import answer_bytes
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.claim_batch import Batch
from cirrusmq.receiving.ordered_pages import MoveBudget
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.recent_ids import Recent
from cirrusmq.storage.bodies.contents import read_contents

REASON = "too_large"
TAKEN_SECONDS = 30
"""Seconds for a receiver whose answer can hold the message to take it."""
_HOLDERS = {"plain": "an answer without gzip", "event": "the event of its function"}
_logger = logging.getLogger(__name__)


class Told(Recent):
    """Messages that have a line in the log."""


def settle(core: Core, source: Source, batch: Batch) -> None:
    """Logs the messages that a receive passed over, and dead-letters them if nobody took them.

    Messages that leave their parcels are removed from the batch's passed messages.
    """
    budget = MoveBudget(core)
    for key, (parcel, index) in list(batch.passed.items()):
        if parcel.answer_bytes(index) <= batch.wanted.largest_bytes:
            continue  # it fits into an answer without the results of deletes
        try:
            if _leaves(core, source, parcel, index, batch, budget):
                del batch.passed[key]
        except CirrusMQError as error:
            _logger.warning("%s is not dealt with now: %r", key, error.__cause__ or error)
            budget.end()


def _leaves(
    core: Core, source: Source, parcel: Parcel, index: int, batch: Batch, budget: MoveBudget
) -> bool:
    """Moves a message into a separate parcel, or dead-letters it later. Returns True if so."""
    name = f"{batch.wanted.reach} {source.id} {parcel.message_id(index)}"
    if name not in core.memory(Told):
        if parcel.count > 1 and not source.ordered:
            if not budget.spend():
                return False
            if _set_apart(core, source, parcel, index, batch):
                return True
        core.memory(Told).add(name)
        _tell(source, parcel, index, batch)
    waited_ms = core.now_ms() - parcel.ready_ms(index)
    if source.dead_letter is None or waited_ms < TAKEN_SECONDS * 1000 or not budget.spend():
        return False
    if source.makes_dead_letter_queue:
        ask_for_queue(core, source, parcel)
        return False
    target = dead_letter_queue(core, source)
    if target is None:
        return False
    now_ms = core.now_ms()
    return move_to_queue(core, source, parcel, index, target, REASON, now_ms) is not None


def _set_apart(core: Core, source: Source, parcel: Parcel, index: int, batch: Batch) -> bool:
    """Moves a message into a separate parcel, if an answer can hold it by its exact bound.

    Returns False if no answer can. If another worker was faster, the next scan sees the result.
    """
    (messages,) = read_contents(core, source, [(parcel, [index])])
    if index not in messages:
        return True
    percent = messages[index].answer_percent
    if answer_bytes(parcel.sizes[index], percent) > batch.wanted.largest_bytes:
        return False
    now_ms = core.now_ms()
    due_ms = parcel.ready_ms(index)
    alone = rekeyed(core, source, parcel, [index], parcel.key_ms, due_ms, now_ms)
    rekey(core, source, parcel, [index], replace(alone, answer_percent=percent), now_ms)
    return True


def _tell(source: Source, parcel: Parcel, index: int, batch: Batch) -> None:
    _logger.warning(
        "message %s of source %s is passed over: it may take %d bytes of JSON, more than %s has",
        *(parcel.message_id(index), source.id, parcel.answer_bytes(index)),
        _HOLDERS.get(batch.wanted.reach, "any answer"),
    )
