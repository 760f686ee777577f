"""`cirrusmq queue rates` and `cirrusmq topic rates`: the last hour, or hours, by intervals."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from cirrusmq_client import Queue as SourceQueue
from cirrusmq_client import Subscription
from cirrusmq_client.answers import RatesOfLastHour
from cirrusmq_client.times import to_text
from cirrusmq_local.commands import completion
from cirrusmq_local.commands.arguments import DATA, Data, Json, Queue, Topic
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_json, print_table
from cirrusmq_local.commands.queues import Receiver

of_queues = typer.Typer()
of_topics = typer.Typer()
Hours = Annotated[
    int | None, typer.Option(help="Show this number of hours, by the hour: at most 168.")
]
_OF_QUEUE = ("sent", "received", "deleted", "kept")
_OF_TOPIC = ("published",)
_OF_SUBSCRIPTION = ("delivered", "kept")


@of_queues.command("rates")
def show_queue_rates(
    name: Queue,
    receiver: Receiver = None,
    hours: Hours = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show how many messages were sent and deleted in the last hour, every five minutes."""
    found = connect(data).show_rates(SourceQueue(name, receiver), hours=hours)
    _print(found, _OF_SUBSCRIPTION if receiver else _OF_QUEUE, as_json)


@of_topics.command("rates")
def show_topic_rates(
    name: Topic,
    subscription: Annotated[
        str | None,
        typer.Option(
            help="One of the topic's subscriptions.", autocompletion=completion.subscriptions
        ),
    ] = None,
    hours: Hours = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show how many messages were published in the last hour, or reached a subscription."""
    client = connect(data)
    if subscription is None:
        _print(client.show_rates(topics=[name], hours=hours), _OF_TOPIC, as_json)
    else:
        found = client.show_rates(Subscription(name, subscription), hours=hours)
        _print(found, _OF_SUBSCRIPTION, as_json)


def _print(found: RatesOfLastHour, always: tuple[str, ...], as_json: bool) -> None:
    """Print a line for each interval. `always`: columns that are shown even if all values are 0."""
    if as_json:
        print_json(found)
        return
    (rates,) = found["rates"]
    numbers: dict[str, Any] = {name: n for name, n in rates.items() if isinstance(n, list)}
    columns = [name for name, each in numbers.items() if name in always or any(each)]
    begins = datetime.fromisoformat(found["starts_at"])
    step = timedelta(seconds=found["interval_seconds"])
    rows = [
        [to_text(begins + index * step), *(numbers[name][index] for name in columns)]
        for index in range(len(numbers["kept"]))
    ]
    print_table(["from", *columns], rows)
