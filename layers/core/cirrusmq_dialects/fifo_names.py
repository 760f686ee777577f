"""Names of FIFO queues: as callers of SQS and SNS know them, and the core's.

`orders.fifo` is the ordered queue of this name. Calls of SQS made it as `orders_fifo` before, and
find it there, too. There is one of the two.
"""

from __future__ import annotations

import contextlib

from cirrusmq.base.errors import QueueNotFound
from cirrusmq.base.names import FIFO, FIFO_OF_BEFORE
from cirrusmq.queues.queues import get_queue
from cirrusmq.runtime.core import Core


def shown_fifo(name: str) -> str:
    """The name of an ordered queue as callers of SQS know it."""
    if name.endswith(FIFO_OF_BEFORE):
        return name.removesuffix(FIFO_OF_BEFORE) + FIFO
    return name


def resolved(core: Core, account: str, ref: str) -> str:
    """The core's name of a queue as callers of SQS name it; of the account, unless that says.

    An `orders.fifo` that is not there is one that a call of SQS would make.
    """
    owner, colon, name = ref.rpartition(":")
    if not name.endswith(FIFO):
        return ref
    before = name.removesuffix(FIFO) + FIFO_OF_BEFORE
    for each in (before, name):
        with contextlib.suppress(QueueNotFound):
            if get_queue(core, owner or account, each).attributes.ordered:
                return f"{owner}{colon}{each}"
    return ref
