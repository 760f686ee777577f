"""`cirrusmq doctor`: finds problems of a setup, with a fix for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cirrusmq_client import find_connection
from cirrusmq_client.errors import NotConfigured
from cirrusmq_local.commands import machine_checks, service_checks
from cirrusmq_local.commands.arguments import DATA, Json
from cirrusmq_local.commands.console import REFUSED, print_json, show
from cirrusmq_local.commands.findings import Finding, note, wrong

PORT = 8080


def doctor(
    port: Annotated[
        int, typer.Option(help="Port of a service that is not started yet.", min=1, max=65535)
    ] = PORT,
    as_json: Json = False,
    data: Annotated[
        Path, typer.Option(help="Folder of the service on this machine.", readable=False)
    ] = DATA,
) -> None:
    """Print each problem of a setup with its fix, one on each line; change nothing.

    Exits with 0 if there is no problem, and with 1 if there is one.
    """
    found = []
    for finding in _findings(data, port):
        found.append(finding)
        if not as_json:
            print(f"{finding.state:<6}{finding.about:<9}{show(finding.text)}", flush=True)
    if as_json:
        print_json([asdict(finding) for finding in found])
    if any(finding.state == "wrong" for finding in found):
        raise typer.Exit(REFUSED)


def _findings(data: Path, port: int) -> Iterator[Finding]:
    yield machine_checks.check_python()
    answers = False
    for finding in _of_service(data, port):
        answers = answers or finding.about == "key"
        yield finding
    if not answers:
        # A service that answers has its folder open, and has checked it.
        yield from machine_checks.check_folder(data)
    yield machine_checks.check_disk(data)
    yield machine_checks.check_reports()


def _of_service(data: Path, port: int) -> Iterator[Finding]:
    """Return findings about the service; the last one is about the key if it answers."""
    try:
        connection = find_connection(data)
    except NotConfigured as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            yield note("service", f"none was started in {data} yet: cirrusmq up")
            yield from service_checks.check_port(port)
        else:
            yield wrong("service", error.detail)
        return
    health = service_checks.check_service(connection)
    yield health.finding
    if health.time is not None:
        yield service_checks.check_clock(health)
        yield service_checks.check_key(connection)
