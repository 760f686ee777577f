"""`cirrusmq report …`: usage with its charges, and backlogs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from cirrusmq_client import Client
from cirrusmq_local.commands.arguments import DATA, Data, Json
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_json, print_listing, print_table

reports = typer.Typer(no_args_is_help=True, help="Bills and backlogs.")
Make: TypeAlias = Annotated[bool, typer.Option(help="Run the job, where it can run here.")]
_WAITING = ("name", "kind", "active", "inactive", "delayed", "dead", "oldest_age_seconds")
_LINES = ("resource", "kind", "correction", "count", "bytes", "amount")


@reports.command("billing")
def billing(
    since: Annotated[str | None, typer.Option("--from", help="2026-11-01T00:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="2026-12-01T00:00:00Z.")] = None,
    make: Make = True,
    adjustments: Annotated[
        Path | None, typer.Option(help="Amounts to add to bills, one in JSON a line.")
    ] = None,
    accept_gaps: Annotated[
        bool, typer.Option("--accept-gaps", help="Bill without use that no export shows.")
    ] = False,
    accept_removed: Annotated[
        bool, typer.Option("--accept-removed", help="Go on although records are missing.")
    ] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show the newest bills of the account; on one machine they are made now."""
    client = connect(data)
    accepted = {"--accept-gaps": accept_gaps, "--accept-removed": accept_removed}
    options = [option for option, given in accepted.items() if given]
    if adjustments is not None:
        options += ["--adjustments", str(adjustments.absolute())]
    page = _make(client, "billing", make, options)
    report = client.report_billing(since, until)
    if as_json:
        print_json(report)
        return
    print(f"{report['from']} to {report['to']} (UTC), made {report['generated_at']}")
    for gap in report["gaps"]:
        print(f"missing: the use from {gap['from']} to {gap['to']}, which no export shows")
    for invoice in report["invoices"]:
        rows = [[line.get(column) for column in _LINES] for line in invoice["lines"]]
        state = invoice.get("number") or "open"
        title = f"{invoice['month']}: {invoice['total']} {invoice['currency']}, {state}"
        print_table(_LINES, rows, title=title)
    _tell(page)


@reports.command("backlog")
def backlog(
    at: Annotated[str | None, typer.Option(help="2026-11-20T08:00:00Z; else now.")] = None,
    make: Make = True,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show the newest backlog report; on one machine it is made now."""
    client = connect(data)
    page = _make(client, "backlog", make)
    report = client.report_backlog(at)
    if as_json:
        print_json(report)
        return
    print(f"at {report['at']}, made {report['generated_at']}")
    print_listing(report["resources"], _WAITING, as_json, "nothing was waiting")
    _tell(page)


def _tell(page: Path | None) -> None:
    if page is not None:
        print(f"the page: {page}")


def _make(client: Client, report: str, wanted: bool, options: Sequence[str] = ()) -> Path | None:
    if not wanted:
        return None
    from cirrusmq_local.stack.report_run import ReportFailedError, make_report

    if find_spec("pyspark") is None:
        print("reports are made by Spark, which is not installed: make report", file=sys.stderr)
        raise typer.Exit(1)
    try:
        return make_report(client, report, options)
    except ReportFailedError:
        raise typer.Exit(1) from None
