"""`cirrusmq report …`: bills, backlogs, and manual corrections of bills."""

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
Make: TypeAlias = Annotated[bool, typer.Option(help="Run the job, if it can run here.")]
_WAITING = ("name", "kind", "active", "inactive", "delayed", "dead", "oldest_age_seconds")
_LINES = ("resource", "kind", "correction", "count", "bytes", "amount")


@reports.command("billing")
def billing(
    since: Annotated[str | None, typer.Option("--from", help="2026-11-01T00:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="2026-12-01T00:00:00Z.")] = None,
    make: Make = True,
    adjustments: Annotated[
        Path | None, typer.Option(help="Amounts to add to bills, one JSON object on each line.")
    ] = None,
    accept_gaps: Annotated[
        bool, typer.Option("--accept-gaps", help="Make bills without the use that is in no export.")
    ] = False,
    alert_topic: Annotated[
        str | None, typer.Option(help="A topic for messages about exceeded budgets, one for each.")
    ] = None,
    accept_removed: Annotated[
        bool, typer.Option("--accept-removed", help="Continue although records are missing.")
    ] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show the newest bills of the account; on one machine the job makes them now."""
    client = connect(data)
    accepted = {"--accept-gaps": accept_gaps, "--accept-removed": accept_removed}
    options = [option for option, given in accepted.items() if given]
    if adjustments is not None:
        options += ["--adjustments", str(adjustments.absolute())]
    page = _make(client, "billing", make, options)
    if page is not None and alert_topic is not None:
        from cirrusmq_local.stack.budget_alerts import tell_budgets

        tell_budgets(client, alert_topic, page.parent, data)
    report = client.report_billing(since, until)
    if as_json:
        print_json(report)
        return
    print(f"{report['from']} to {report['to']} (UTC), made {report['generated_at']}")
    budget = report.get("budget")
    if budget is not None:
        spent = f"{budget['spent']} of {budget['amount']} {budget['currency']}"
        print(f"budget of {budget['month']}: {spent}, {budget['forecast']} at its end")
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
    """Show the newest backlog report; on one machine the job makes it now."""
    client = connect(data)
    page = _make(client, "backlog", make)
    report = client.report_backlog(at)
    if as_json:
        print_json(report)
        return
    print(f"at {report['at']}, made {report['generated_at']}")
    print_listing(report["resources"], _WAITING, as_json, "nothing was waiting")
    _tell(page)


@reports.command("adjust")
def adjust(
    account: Annotated[str, typer.Option(help="The account of the bill.")],
    month: Annotated[str, typer.Option(help="Month of the use: 2026-11.")],
    kind: Annotated[str, typer.Option(help="Kind of use; for an amount: credit, or any name.")],
    reason: Annotated[str, typer.Option(help="The text in the document.")],
    quantity: Annotated[
        str | None, typer.Option(help="Messages, or byte hours, priced by the rate card: -500.")
    ] = None,
    amount: Annotated[str | None, typer.Option(help="An exact decimal: -1.50.")] = None,
    currency: Annotated[
        str | None,
        typer.Option(help="Currency of the amount; by default the rate card's in that month."),
    ] = None,
    adjustment_id: Annotated[
        str | None,
        typer.Option("--id", help="An id counts once; by default it is made from the values."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder for the file; by default the service's on this machine."),
    ] = None,
    data: Data = DATA,
) -> None:
    """Add or subtract an amount or a quantity in an account's next document, by a file."""
    from cirrusmq_local.stack.report_run import ADJUSTMENTS

    place = folder or data / "reports" / ADJUSTMENTS
    values = {
        "account": account, "month": month, "kind": kind, "reason": reason, "quantity": quantity,
        "amount": amount, "currency": currency, "id": adjustment_id,
        "folder": str(place.absolute()),
    }  # fmt: skip
    # Joined, because a value may begin with a minus.
    _by_hand("adjust", [f"--{name}={value}" for name, value in values.items() if value is not None])


@reports.command("publish")
def publish(
    proposal: Annotated[
        str | None,
        typer.Option(help="A proposal of a job with --propose; without it, documents are copied."),
    ] = None,
    report: Annotated[str, typer.Option(help="billing or backlog.")] = "billing",
    output: Annotated[
        Path | None,
        typer.Option(help="The reports' folder; by default the service's on this machine."),
    ] = None,
    data: Data = DATA,
) -> None:
    """Publish a proposal as the current run, unless a newer one exists; copy its documents."""
    place = output or data / "reports"
    named = [] if proposal is None else [f"--proposal={proposal}"]
    _by_hand("publish", [f"--output={place.absolute()}", f"--report={report}", *named])


def _by_hand(program: str, arguments: Sequence[str]) -> None:
    _need_spark()
    from cirrusmq_local.stack.report_run import run_program

    if code := run_program(program, arguments):
        raise typer.Exit(code)


def _need_spark() -> None:
    if find_spec("pyspark") is None:
        print("reports are made by Spark, which is not installed: make report", file=sys.stderr)
        raise typer.Exit(1)


def _tell(page: Path | None) -> None:
    if page is not None:
        print(f"the page: {page}")


def _make(client: Client, report: str, wanted: bool, options: Sequence[str] = ()) -> Path | None:
    if not wanted:
        return None
    _need_spark()
    from cirrusmq_local.stack.report_run import ReportFailedError, make_report

    try:
        return make_report(client, report, options)
    except ReportFailedError:
        raise typer.Exit(1) from None
