"""The audit of the caller's account."""

from __future__ import annotations

from collections.abc import Mapping

from cirrusmq.access.audit import Chosen, page_of_entries
from cirrusmq.base.timestamps import parse_time
from cirrusmq_lambda.answers.audit import ChangePage, ChangeState
from cirrusmq_lambda.http import Request, Route, following
from cirrusmq_lambda.replies import Ok


def show_changes(request: Request) -> Ok[ChangePage]:
    """Returns a page of the account's changes in the last 90 days: which key made which call."""
    account = request.caller.account
    limit, cursor = request.page()
    query = request.query
    chosen = Chosen(
        from_ms=_moment(query, "from"),
        to_ms=_moment(query, "to"),
        key_id=query.get("key_id"),
        resource=query.get("resource"),
    )
    listed, more = page_of_entries(request.core, account, chosen, limit, cursor)
    return Ok(ChangePage(changes=list(map(ChangeState.of, listed)), cursor=following(more)))


def _moment(query: Mapping[str, str], name: str) -> int | None:
    return parse_time(name, query[name]) if name in query else None


ROUTES: dict[str, Route] = {"GET /audit": show_changes}
