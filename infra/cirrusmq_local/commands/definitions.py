"""`cirrusmq up --definitions`: makes the resources of a file before the service is ready."""

from __future__ import annotations

from pathlib import Path

from cirrusmq_client import CirrusMQError, Client, find_connection
from cirrusmq_local.commands import data
from cirrusmq_local.commands.console import REFUSED, fail, show, tell
from cirrusmq_local.declarations.resources import Declared, Place
from cirrusmq_local.declarations.showing import step_line

SECRETS = "subscription_secrets.jsonl"
"""File in the data folder for the signing secrets of new URLs, which are shown only once."""

Definitions = dict[Place, Declared]


def read_definitions(file: Path) -> Definitions:
    """Return a file's declarations; exits with 2 and a line for each fault if it has any."""
    return data.read_file(file)


def make_definitions(file: Path, declared: Definitions, folder: Path) -> None:
    """Make the declared resources on the service of a data folder; nothing is deleted.

    Exits with 1 if a resource cannot be changed to match the file.
    """
    # The service has just written its connection; the environment may name another service.
    connection = find_connection(folder, environment={})
    try:
        with Client(connection) as client:
            made = data.make_plan_of(client, file, declared)
            for conflict in made.conflicts:
                tell(f"{file}: {show(str(conflict.place))}: {conflict.reason}")
            if made.conflicts:
                raise SystemExit(REFUSED)
            data.apply_plan(
                client,
                made,
                force=False,
                secrets=folder / SECRETS,
                report=lambda step: tell(f"{file}: {show(step_line(step))}"),
            )
    except CirrusMQError as error:
        fail(f"{file}: {error.detail}")
