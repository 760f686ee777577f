"""Reports of the data pipeline."""

from __future__ import annotations

from cirrusmq.metering import reports
from cirrusmq_lambda.http import Answer, Request, Route, answer


def show_billing(request: Request) -> Answer:
    """The account's invoices."""
    account, query = request.caller.account, request.query
    return answer(200, reports.billing(request.core, account, query.get("from"), query.get("to")))


def show_backlog(request: Request) -> Answer:
    """What stands in the account's queues and subscriptions."""
    account, query = request.caller.account, request.query
    return answer(200, reports.backlog(request.core, account, query.get("at")))


ROUTES: dict[str, Route] = {
    "GET /reports/billing": show_billing,
    "GET /reports/backlog": show_backlog,
}
