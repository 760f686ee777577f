"""Log records whose fan-out fails: put aside, so that those behind them go on.

    stream: 1 ── 2 fails three times, is parked ── 3 ── 4
    sweep:                                each minute 2 again, until it is done or expires

Where the store itself is out nothing is parked: then the stream brings the batch again.
"""

from __future__ import annotations

import contextlib

from cirrusmq.core import Core
from cirrusmq.errors import Unavailable
from cirrusmq.fan_out import fan_out
from cirrusmq.storage.parcels import parked_item
from cirrusmq.storage.shards import shard_keys
from cirrusmq.storage.store import ConditionFailed, Item
from cirrusmq.topic_log import show_again_if_late

TRIES = 3


def fan_out_or_park(core: Core, record: Item, came_ms: int) -> Exception | None:
    """Deliver a log record, or put it aside; answers why, where it was. Raises Unavailable.

    `came_ms`: when it came into the log, in whole seconds, rounded down.
    """
    show_again_if_late(core, record, came_ms)
    failure: Exception | None = None
    for _ in range(TRIES):
        try:
            fan_out(core, record)
        except Unavailable:
            raise
        except Exception as error:
            failure = error
        else:
            return None
    _park(core, record)
    return failure


def retry_parked(core: Core, deadline_ms: int) -> None:
    """Try what was put aside once more; what fails again stays until its record expires.

    From anywhere on, so that what is not reached until `deadline_ms` is so another time.
    """
    table = core.tables.messages
    shards = shard_keys("P")
    core.random.shuffle(shards)
    for pk in shards:
        for parked in core.store.query_all(table, pk):
            if core.now_ms() >= deadline_ms:
                return
            record = core.store.get(table, parked["log"]["S"], parked["of"]["S"])
            with contextlib.suppress(Exception):
                if record is not None:
                    fan_out(core, record)
                _forget(core, parked)


def _park(core: Core, record: Item) -> None:
    with contextlib.suppress(ConditionFailed):  # it came again, and is here already
        core.store.put_if_absent(core.tables.messages, parked_item(record))


def _forget(core: Core, parked: Item) -> None:
    request = {
        "TableName": core.tables.messages,
        "Key": {name: parked[name] for name in ("pk", "sk")},
    }
    core.store.write("DeleteItem", request)
