"""Calls of the core on messages, as several dialects make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.shapes import read_values
from cirrusmq.model.queue import Queue
from cirrusmq.model.source import Source
from cirrusmq.queues.receivers import source_with_id
from cirrusmq.receiving.receive import begin, take_what_fits
from cirrusmq.receiving.receive_request import Received, ReceiveRequest
from cirrusmq.runtime.core import Core
from cirrusmq.settlement.delete import delete_what_can_be
from cirrusmq.settlement.settle import SourceOf
from cirrusmq_dialects.asking import CallerAsked

ANSWER_SECONDS = 2
"""Seconds of the call's time that are left for the last scan and the answer."""

Results: TypeAlias = Mapping[str, CirrusMQError | int]
"""The time in ms that a message is hidden until, or its refusal, by receipt."""


def receive(
    asked: CallerAsked, find: Callable[[], Source], given: Mapping[str, Any]
) -> list[Received]:
    """Returns messages, after a wait within the call's time if there are none.

    find: returns the source as it is now. given: the members of a request of the core's.
    """
    core = asked.core
    begun = begin(core, find, asked.caller, read_values(given, ReceiveRequest))
    return take_what_fits(core, begun, asked.caller, asked.call.left_seconds() - ANSWER_SECONDS)


def source_of(core: Core, queue: Queue) -> SourceOf:
    """Finds a source of the queue by its id."""
    return lambda source_id: source_with_id(core, queue, source_id)


def delete(core: Core, queue: Queue, receipts: Iterable[str]) -> Results:
    """Ends received messages. Returns the results by receipt."""
    return delete_what_can_be(core, list(receipts), source_of(core, queue))


def hide(core: Core, queue: Queue, seconds: Mapping[str, int]) -> Results:
    """Hides received messages for these times from now on, by receipt. Returns the results."""
    # Deletes and receives are the most of all calls: their cold starts do without.
    from cirrusmq.settlement.visibility import VisibilityRequest, change_visibility

    held = [{"receipt": each, "visibility_timeout_seconds": seconds[each]} for each in seconds]
    request = read_values({"entries": held}, VisibilityRequest)
    return change_visibility(core, request, source_of(core, queue))


def dead_letter(core: Core, queue: Queue, receipts: Iterable[str]) -> Results:
    """Makes dead letters of received messages. Returns the results by receipt."""
    from cirrusmq.settlement import dead_letter as dead_letters

    request = read_values({"receipts": list(receipts)}, dead_letters.DeadLetterRequest)
    return dead_letters.dead_letter(core, request, source_of(core, queue))
