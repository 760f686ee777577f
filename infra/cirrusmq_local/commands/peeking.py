"""`cirrusmq peek`: shows messages without leasing them."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from cirrusmq_local.commands.arguments import DATA, Data, Json, Source, read_source
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import print_json
from cirrusmq_local.commands.dead_letters import (
    OfReceiver,
    OfSubscription,
    OlderThan,
    Reason,
    SourceName,
    YoungerThan,
    chosen,
)
from cirrusmq_local.commands.messages import message_line


def peek(
    source: Source,
    limit: Annotated[int, typer.Option("--max", help="Maximum number of messages.", min=1)] = 10,
    reason: Reason = None,
    of_source: SourceName = None,
    receiver: OfReceiver = None,
    subscription: OfSubscription = None,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show active messages, one on each line; none is leased.

    With an option, only the dead letters that it selects.
    """
    wanted = chosen(reason, of_source, receiver, subscription, older_than, younger_than)
    for message in islice(connect(data).peek_all(read_source(source), wanted), limit):
        if as_json:
            print_json(dict(message.json))
        else:
            print(message_line(message), flush=True)
