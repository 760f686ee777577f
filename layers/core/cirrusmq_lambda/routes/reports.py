"""Reports of the data pipeline."""

from __future__ import annotations

from cirrusmq.base.limits import REPORT_LINES
from cirrusmq.metering import reports
from cirrusmq_lambda.answers.reports import BacklogReport, BillingReport
from cirrusmq_lambda.http import Request, Route, following, read_limit
from cirrusmq_lambda.replies import Ok


def show_billing(request: Request) -> Ok[BillingReport]:
    """Returns the account's invoices, with a page of their lines. Raises LimitExceeded,
    ReportNotFound.
    """
    account, query = request.caller.account, request.query
    report, more = reports.billing(
        request.core,
        account,
        query.get("from"),
        query.get("to"),
        lines=read_limit(query, REPORT_LINES, REPORT_LINES[1]),
        cursor=query.get("cursor"),
    )
    return Ok(BillingReport.of(report, following(more)))


def show_backlog(request: Request) -> Ok[BacklogReport]:
    """Returns the backlog of the account's queues and subscriptions. Raises LimitExceeded,
    ReportNotFound.
    """
    account, query = request.caller.account, request.query
    report = reports.backlog(request.core, account, query.get("at"))
    known = {name: report[name] for name in BacklogReport.__struct_fields__}
    return Ok(BacklogReport(**known))


ROUTES: dict[str, Route] = {
    "GET /reports/billing": show_billing,
    "GET /reports/backlog": show_backlog,
}
