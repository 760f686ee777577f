"""`cirrusmq queue consumers` and `cirrusmq topic consumers`: keys and times of receives."""

from __future__ import annotations

import typer

from cirrusmq_client import Queue as SourceQueue
from cirrusmq_client import Subscription
from cirrusmq_client.sources import Source
from cirrusmq_local.commands.arguments import DATA, Data, Json, Queue, Topic
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_listing
from cirrusmq_local.commands.queues import Receiver
from cirrusmq_local.commands.subscriptions import Named

of_queues = typer.Typer()
of_topics = typer.Typer()
_COLUMNS = ("access_key_id", "account", "last_received_at")


@of_queues.command("consumers")
def list_queue_consumers(
    name: Queue, receiver: Receiver = None, as_json: Json = False, data: Data = DATA
) -> None:
    """List the access keys that called receive within seven days, and the time of the last call."""
    _print(SourceQueue(name, receiver), as_json, data)


@of_topics.command("consumers")
def list_group_consumers(
    name: Topic, subscription: Named, as_json: Json = False, data: Data = DATA
) -> None:
    """List the access keys that received from a pull group within seven days, and when last."""
    _print(Subscription(name, subscription), as_json, data)


def _print(source: Source, as_json: bool, data: Data) -> None:
    found = list(connect(data).list_consumers(source))
    print_listing(found, _COLUMNS, as_json, "no consumers")
