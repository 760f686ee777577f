"""`cirrusmq peek`: looking at messages without taking them."""

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
    most: Annotated[int, typer.Option("--max", help="At most so many.", min=1)] = 10,
    reason: Reason = None,
    of_source: SourceName = None,
    receiver: OfReceiver = None,
    subscription: OfSubscription = None,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Show active messages, one line each; none is claimed.

    With an option, only dead letters that it selects.
    """
    wanted = chosen(reason, of_source, receiver, subscription, older_than, younger_than)
    for message in islice(connect(data).peek_all(read_source(source), wanted), most):
        if as_json:
            print_json(dict(message.json))
        else:
            print(message_line(message), flush=True)
