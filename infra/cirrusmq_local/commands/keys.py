"""`cirrusmq key …`: access keys, their scopes and secrets."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cirrusmq_local.commands import completion
from cirrusmq_local.commands.arguments import DATA, Data, Json, Yes, ask, read_json
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_listing, print_record

KeyId = Annotated[str, typer.Argument(help="The access key's id.", autocompletion=completion.keys)]
Account = Annotated[str | None, typer.Option(help="Another account; needs an admin key.")]
_COLUMNS = (
    "access_key_id",
    "account",
    "admin",
    "scope",
    "manages_keys",
    "signing",
    "expires_at",
    "last_used_at",
    "description",
)
keys = typer.Typer(no_args_is_help=True, help="Make, show, rotate and delete access keys.")


@keys.command("create")
def create(
    account: Account = None,
    scope: Annotated[
        str | None,
        typer.Option(help='In JSON: {"send": {"queues": ["orders"]}, "receive": "all"}.'),
    ] = None,
    admin: Annotated[bool, typer.Option(help="For keys of all accounts.")] = False,
    manages_keys: Annotated[
        bool, typer.Option(help="May make, rotate and delete keys that have no more rights.")
    ] = False,
    signing: Annotated[
        bool, typer.Option(help="May sign calls of other services' SDKs, such as SQS's.")
    ] = False,
    expires_at: Annotated[
        str | None, typer.Option(help="Time when it expires: 2027-11-20T08:00:00Z.")
    ] = None,
    description: Annotated[str | None, typer.Option(help="A text.")] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Make a key; its secret is shown only once. Without a scope it may make every call."""
    given: dict[str, Any] = {
        "admin": admin,
        "scope": read_json("--scope", scope),
        "manages_keys": manages_keys,
        "signing": signing,
        "expires_at": expires_at,
        "description": description,
    }
    print_record(connect(data).create_key(account, **given), as_json)


@keys.command("list")
def list_keys(account: Account = None, as_json: Json = False, data: Data = DATA) -> None:
    """List an account's keys, with the day of their last use."""
    found = list(connect(data).list_keys(account))
    print_listing(found, _COLUMNS, as_json, "no keys")


@keys.command("rotate")
def rotate(
    key_id: KeyId,
    grace_seconds: Annotated[
        int | None,
        typer.Option(help="How long the old secret stays valid; a day by default.", min=0),
    ] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Give a key a new secret, shown only once; the old secret stays valid for a while."""
    print_record(connect(data).rotate_key(key_id, grace_seconds), as_json)


@keys.command("delete")
def delete(key_id: KeyId, yes: Yes = False, data: Data = DATA) -> None:
    """Delete a key: calls with it are rejected."""
    ask(f"Delete the key {key_id}?", yes)
    connect(data).delete_key(key_id)
