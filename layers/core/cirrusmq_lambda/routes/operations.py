"""Operations of the caller's account, and their progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.names import QUEUE_NAME, TOPIC_NAME, check_name
from cirrusmq.queues import operations
from cirrusmq.queues.operation_list import page_of_operations
from cirrusmq.queues.operations import Kind, State
from cirrusmq_lambda import rights
from cirrusmq_lambda.answers.operations import OperationPage, OperationState
from cirrusmq_lambda.http import Request, Route, following
from cirrusmq_lambda.replies import Ok

_WORDS: Mapping[str, tuple[str, ...]] = {"state": get_args(State), "kind": get_args(Kind)}
_NAMES = {"queue": QUEUE_NAME, "topic": TOPIC_NAME}


def show_operation(request: Request) -> Ok[OperationState]:
    """Returns the state of an operation. Raises OperationNotFound."""
    found = operations.get(request.core, request.caller.account, request.path("id"))
    rights.check_manages(request.caller, found.queue, found.topic)
    return Ok(OperationState.of(found))


def show_operations(request: Request) -> Ok[OperationPage]:
    """Returns a page of the purges, rewinds, redrives, backfills and replays of the last seven
    days; a key with a scope sees only resources that it manages.
    """
    caller = request.caller
    limit, cursor = request.page()
    manages = rights.managed(caller)
    listed, more = page_of_operations(
        request.core,
        caller.account,
        _chosen(request.query),
        lambda operation: manages(operation.queue, operation.topic),
        limit,
        cursor,
    )
    shown = list(map(OperationState.of, listed))
    return Ok(OperationPage(operations=shown, cursor=following(more)))


def _chosen(query: Mapping[str, str]) -> dict[str, str]:
    chosen = {name: query[name] for name in (*_WORDS, *_NAMES) if name in query}
    for name, value in chosen.items():
        if name in _NAMES:
            check_name(name, value, _NAMES[name])
        elif value not in _WORDS[name]:
            raise InvalidParameter(name, f"must be one of: {', '.join(_WORDS[name])}")
    return chosen


ROUTES: dict[str, Route] = {
    "GET /operations": show_operations,
    "GET /operations/{id}": show_operation,
}
