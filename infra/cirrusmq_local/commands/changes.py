"""`cirrusmq changes`: the service's list of changes, with the key that made each."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from cirrusmq_local.commands import completion
from cirrusmq_local.commands.arguments import DATA, MAX, Data, Json, Most, read_time
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_listing

_COLUMNS = ("at", "account", "key_id", "route", "resource", "code")


def changes(
    since: Annotated[
        str | None, typer.Option(help="Only at or after this time: 2026-11-20T08:00:00Z.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only until this time.")] = None,
    key: Annotated[
        str | None,
        typer.Option(help="Only changes by this access key.", autocompletion=completion.keys),
    ] = None,
    resource: Annotated[
        str | None,
        typer.Option(
            help="Only of this queue, topic or key, and its receivers, subscriptions and grants."
        ),
    ] = None,
    limit: Most = MAX,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """List the account's changes of the last 90 days, the newest first.

    Rejected calls are only in the log: `cirrusmq audit` reads it on one machine.
    """
    found = connect(data).list_changes(
        None if since is None else read_time("--since", since),
        None if until is None else read_time("--until", until),
        key_id=key,
        resource=resource,
    )
    print_listing(list(islice(found, limit)), _COLUMNS, as_json, "no changes")
