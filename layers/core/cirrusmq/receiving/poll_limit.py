"""The limit of an account's receives that wait at the same time, if a deployment sets one.

A wait costs one write unit, two if a message ends it (`access.running`), and nothing if there is no
limit or the wait is short. Above the limit a receive is answered at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cirrusmq.access.running import counted, counts_key
from cirrusmq.runtime.core import Core

COUNTED_MS = 1_000
"""Only a wait longer than this is counted: others are over before the count is read."""
_WAITING = "waiting"


@contextlib.contextmanager
def waiting(core: Core, account: str, until_ms: int) -> Iterator[bool]:
    """Counts a receive of the account while it waits. Yields False if the limit is reached."""
    bound = core.settings.account_waiting_receives
    if not bound or until_ms - core.now_ms() <= COUNTED_MS:
        yield True
        return
    with counted(core, counts_key(account, _WAITING), until_ms) as waiting_now:
        yield waiting_now <= bound
