"""`cirrusmq report …`: what was used, and what waits."""

from __future__ import annotations

from typing import Annotated

import typer

from cirrusmq_local.arguments import DATA, Data, Json
from cirrusmq_local.calls import connect
from cirrusmq_local.console import print_json, print_listing, print_table

reports = typer.Typer(no_args_is_help=True, help="Bills and backlogs.")
_LINES = ("resource", "kind", "count", "bytes", "amount")


@reports.command("billing")
def billing(
    since: Annotated[str | None, typer.Option("--from", help="2026-11-01T00:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="2026-12-01T00:00:00Z.")] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show the newest finished bills of the account."""
    report = connect(data).report_billing(since, until)
    if as_json:
        print_json(report)
        return
    print(f"{report['from']} to {report['to']}, made {report['generated_at']}")
    for invoice in report["invoices"]:
        rows = [[line.get(column) for column in _LINES] for line in invoice["lines"]]
        title = f"{invoice['month']}: {invoice['total']} {invoice['currency']}"
        print_table(_LINES, rows, title=title)


@reports.command("backlog")
def backlog(
    at: Annotated[str | None, typer.Option(help="2026-11-20T08:00:00Z; else now.")] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show the newest finished backlog report."""
    report = connect(data).report_backlog(at)
    if as_json:
        print_json(report)
        return
    print(f"at {report['at']}, made {report['generated_at']}")
    resources = report["resources"]
    columns = [*dict.fromkeys(name for each in resources for name in each)]
    print_listing(resources, columns, as_json, "nothing was waiting")
