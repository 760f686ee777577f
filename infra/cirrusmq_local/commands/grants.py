"""`cirrusmq queue …` and `cirrusmq topic …` for grants to other accounts, and `cirrusmq shared`."""

from __future__ import annotations

from typing import Annotated

import typer

from cirrusmq_local.commands import completion
from cirrusmq_local.commands.arguments import DATA, Data, Json, Queue, Topic, Yes, ask
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_listing, print_record

Account = Annotated[str, typer.Argument(help="The other account.")]
Granted = Annotated[
    str, typer.Argument(help="The other account.", autocompletion=completion.accounts)
]
ToQueue = Annotated[str, typer.Argument(help="send, receive, send_receive, info, admin or full.")]
ToTopic = Annotated[
    str, typer.Argument(help="publish, subscribe, publish_subscribe, info, admin or full.")
]
of_queues = typer.Typer()
of_topics = typer.Typer()
_COLUMNS = ("account", "permission")


@of_queues.command("grant")
def grant(
    name: Queue,
    account: Account,
    permission: ToQueue,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Let another account use a queue, as account:queue. A second grant replaces the first."""
    print_record(connect(data).put_grant(name, account, permission), as_json)


@of_queues.command("grants")
def list_grants(name: Queue, as_json: Json = False, data: Data = DATA) -> None:
    """List the accounts that may use a queue."""
    print_listing(connect(data).list_grants(name), _COLUMNS, as_json, "no grants")


@of_queues.command("revoke")
def revoke(name: Queue, account: Granted, yes: Yes = False, data: Data = DATA) -> None:
    """Revoke a grant on a queue."""
    ask(f"Take back what {account} may do with {name}?", yes)
    connect(data).delete_grant(name, account)


@of_topics.command("grant")
def grant_topic(
    name: Topic,
    account: Account,
    permission: ToTopic,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Let another account use a topic, as account:topic. A second grant replaces the first."""
    print_record(connect(data).put_topic_grant(name, account, permission), as_json)


@of_topics.command("grants")
def list_topic_grants(name: Topic, as_json: Json = False, data: Data = DATA) -> None:
    """List the accounts that may use a topic."""
    print_listing(connect(data).list_topic_grants(name), _COLUMNS, as_json, "no grants")


@of_topics.command("revoke")
def revoke_topic(name: Topic, account: Granted, yes: Yes = False, data: Data = DATA) -> None:
    """Revoke a grant on a topic; subscriptions that the account made stay."""
    ask(f"Take back what {account} may do with {name}?", yes)
    connect(data).delete_topic_grant(name, account)


def shared(as_json: Json = False, data: Data = DATA) -> None:
    """List the queues and topics that other accounts share with this one."""
    found = connect(data).list_granted()
    print_listing(found, ("queue", "topic", *_COLUMNS), as_json, "nothing is shared")
