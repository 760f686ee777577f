"""How far a log is replayed: messages behind that may not be received yet.

    the log     m1 m2 m3 m4 m5 m6 ──────────────> now
    replay      ──────────>|                       saved: m3
    received    m1 m2 m3                           m5 is there already, by fan-out: it waits

The progress that an operation saves is the frontier. An old one is smaller, which is safe.
"""

from __future__ import annotations

from cirrusmq.base import limits
from cirrusmq.queues.operations import Operation
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory
from cirrusmq.storage.directory import operation_key
from cirrusmq.storage.queries import LAST_KEY

NOTHING = "!"
"""A frontier before all keys."""
_TIME_DIGITS = 13


def frontier(
    core: Core, account: str, operation_id: str, log_id: str, *, ordered: bool
) -> str | None:
    """Returns the key up to which a replay has handed a log out, as it last saved or a little
    before, or None if it is done. ordered: True if messages there have an order."""
    key = operation_key(account, operation_id)
    operation = directory.read_cached(core, key, Operation)
    if operation is None or operation.state != "running":
        return None
    reached = operation.progress.after if operation.progress.pk == log_id else ""
    if reached == LAST_KEY:
        return None
    if reached in ("", NOTHING):
        return NOTHING
    if ordered:
        slack_ms = int(limits.ORDER_SLACK_MS * core.clock.scale) + core.skew_ms
        reached = f"{int(reached[:_TIME_DIGITS]) - slack_ms:013d}"
    return reached
