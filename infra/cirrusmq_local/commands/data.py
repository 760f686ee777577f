"""`cirrusmq data …`: export an account's resources to a file, and apply a file to an account."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer

from cirrusmq_client import Client, find_connection
from cirrusmq_local.commands.arguments import DATA, Data, Json, Yes, ask
from cirrusmq_local.commands.console import fail, print_json, show, tell
from cirrusmq_local.declarations import account, document
from cirrusmq_local.declarations.applying import Stopped, apply_step
from cirrusmq_local.declarations.document import BadFile
from cirrusmq_local.declarations.plan import Plan, Step, make_plan
from cirrusmq_local.declarations.resources import Declared, Place
from cirrusmq_local.declarations.showing import (
    place_json,
    plan_json,
    plan_lines,
    step_json,
    step_line,
)
from cirrusmq_local.plurals import counted

BAD_FILE = 2
CHANGES = 3

data = typer.Typer(
    no_args_is_help=True, help="Queues, topics, subscriptions and grants as one file."
)
importing = typer.Typer(no_args_is_help=True, help="Change an account to match a file.")
data.add_typer(importing, name="import")

File = Annotated[Path, typer.Argument(help="The file, in YAML.", dir_okay=False)]
Delete = Annotated[
    bool, typer.Option("--delete", help="Delete resources that are not in the file.")
]
Force = Annotated[bool, typer.Option("--force", help="Also delete resources that have messages.")]


@data.command("export")
def export(
    file: Annotated[
        Path | None, typer.Argument(help="The file; without it: standard output.", dir_okay=False)
    ] = None,
    data: Data = DATA,
) -> None:
    """Write the account's queues, receivers, grants, topics, subscriptions and schedules as YAML.

    The file has no attributes with default values, no keys, no messages and no signing secrets.
    """
    with _client(data) as client:
        text = document.write(account.exported(account.read_account(client)))
    if file is None:
        print(text, end="", flush=True)
        return
    try:
        _replace(file, text)
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}")


@importing.command("plan")
def plan(
    file: File,
    delete: Delete = False,
    force: Force = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 3 if there is something to change.")
    ] = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show the changes that apply would make, and change nothing.

    Exits with 0; 1 if a resource cannot be changed to match the file; 2 if the file has a fault.
    """
    declared = read_file(file)
    with _client(data) as client:
        made = make_plan_of(client, file, declared, delete=delete, force=force)
    _print(made, as_json)
    refuse_conflicts(made)
    if exit_code and made.steps:
        raise SystemExit(CHANGES)


@importing.command("apply")
def apply(
    file: File,
    delete: Delete = False,
    force: Force = False,
    secrets: Annotated[
        Path | None,
        typer.Option(help="File for the signing secrets of new URLs.", dir_okay=False),
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show the changes, ask on a terminal, and make them.

    With --json: a line with the plan, then a line for each finished step.
    Exits with 0 if the account matches the file; 1 if it does not, and then you can repeat it; 2 if
    the file has a fault.
    """
    declared = read_file(file)
    with _client(data) as client:
        made = make_plan_of(client, file, declared, delete=delete, force=force)
        _print(made, as_json)
        refuse_conflicts(made)
        if any(map(_makes_secret, made.steps)) and secrets is None:
            fail(
                "new URLs get signing secrets, which are told once",
                "name a file for them: --secrets <file>",
            )
        if made.steps:
            ask(f"Do {counted(len(made.steps), 'step')}?", yes)
            apply_plan(client, made, force, secrets, lambda step: _tell_done(step, as_json))
        _tell_pending(client, declared, as_json)


def _tell_done(step: Step, as_json: bool) -> None:
    if as_json:
        print_json({"done": step_json(step)})
    else:
        print(show(f"done {step_line(step)}"), flush=True)


def apply_plan(
    client: Client,
    made: Plan,
    force: bool,
    secrets: Path | None,
    report: Callable[[Step], None],
) -> None:
    """Do the steps and report each; write signing secrets to a file. Exits with 1 if one fails."""
    if secrets is not None:
        _check_writable(secrets)
    for number, step in enumerate(made.steps):
        try:
            secret = apply_step(client, step, force=force)
        except Stopped as stopped:
            _tell_stopped(made, number, stopped)
        report(step)
        if _makes_secret(step):
            _keep_secret(step.place, secret, secrets)


def _keep_secret(place: Place, secret: str | None, file: Path | None) -> None:
    reason = "the answer that told its secret was lost"
    if secret is not None and file is not None:
        record = {"topic": place.parent, "subscription": place.name, "secret": secret}
        try:
            with _open_secrets(file) as out:
                out.write(json.dumps(record) + "\n")
            return
        except OSError as error:
            reason = f"its secret could not be written to {file}: {error.strerror}"
    tell(f"{place}: {reason} (delete the subscription, and apply again)")


def _tell_stopped(made: Plan, done: int, stopped: Stopped) -> NoReturn:
    perhaps = ", and this one perhaps" if stopped.uncertain else ""
    fail(
        f"{step_line(stopped.step)}: {stopped}; done: {done} of"
        f" {counted(len(made.steps), 'step')}{perhaps}",
        "apply again: it goes on from there",
    )


def _tell_pending(client: Client, declared: dict[Place, Declared], as_json: bool) -> None:
    for place, each in declared.items():
        is_url = place.kind == "subscription" and each.attributes["protocol"] == "http"
        if not is_url or not account.is_pending(client, place):
            continue
        if as_json:
            print_json({"pending": place_json(place)})
        else:
            print(f"pending {show(str(place))}: its endpoint has not confirmed yet", flush=True)


def make_plan_of(
    client: Client,
    file: Path,
    declared: dict[Place, Declared],
    *,
    delete: bool = False,
    force: bool = False,
) -> Plan:
    """Return the steps to the resources that a file declares."""
    found = account.read_account(client)
    try:
        return make_plan(
            declared,
            found,
            delete=delete,
            force=force,
            waiting=lambda place: account.count_waiting(client, place),
        )
    except BadFile as error:
        _refuse_file(file, error)


def read_file(file: Path) -> dict[Place, Declared]:
    """Return a file's declarations; exits with 2 and a line for each fault if it has any."""
    try:
        return document.parse(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        tell(f"{file} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        tell(f"{file} is not a text in UTF-8")
    except BadFile as error:
        _refuse_file(file, error)
    raise SystemExit(BAD_FILE)


def _refuse_file(file: Path, error: BadFile) -> NoReturn:
    for line, text in error.problems:
        tell(f"{file}:{line}: {text}")
    raise SystemExit(BAD_FILE)


def refuse_conflicts(made: Plan) -> None:
    """Exit with 1 if a resource cannot be changed to match the file."""
    if made.conflicts:
        places = ", ".join(str(conflict.place) for conflict in made.conflicts)
        fail(f"cannot become what the file says: {places}", "the lines with ! say why")


def _print(made: Plan, as_json: bool) -> None:
    if as_json:
        print_json(plan_json(made))
        return
    for line in plan_lines(made):
        print(show(line), flush=True)


def _makes_secret(step: Step) -> bool:
    return step.action == "create" and step.after.get("protocol") == "http"


def _client(data: Path) -> Client:
    """Return a client with the library's retries: a CI job applies files too, and can wait."""
    return Client(find_connection(data))


def _open_secrets(path: Path) -> TextIO:
    """Open a file to append to; only the owner can read a new file."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a")


def _check_writable(path: Path) -> None:
    try:
        _open_secrets(path).close()
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}")


def _replace(path: Path, text: str) -> None:
    """Write a file atomically."""
    written = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        written.write_text(text, encoding="utf-8")
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)
