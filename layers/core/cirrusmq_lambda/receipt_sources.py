"""The sources whose messages a call may settle, by the queue or subscription in its path."""

from __future__ import annotations

from cirrusmq.access.permissions import find_queue
from cirrusmq.queues.receivers import source_with_id
from cirrusmq.settlement.settle import SourceOf
from cirrusmq_lambda.http import Request
from cirrusmq_lambda.topic_paths import pull_source


def source_of(request: Request) -> SourceOf:
    """Returns a lookup from a source's id to the source, or None if it is not this call's."""
    core = request.core
    if "subscription" in request.event["pathParameters"]:
        held = {source.id: source for source in pull_source(request).all}
        return held.get
    queue = find_queue(core, request.caller, request.path("queue"), "receive")
    return lambda source_id: source_with_id(core, queue, source_id)
