"""A bound of the receives of an account that wait at the same time, where a deployment sets one.

A wait costs one write unit, two if a message ends it (`access.running`), and nothing without a
bound, or where the wait is short. Above the bound a receive is answered at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cirrusmq.access.running import counted, counts_place
from cirrusmq.runtime.core import Core

COUNTED_MS = 1_000
"""Of a wait that is longer than this: others are over before they are counted."""
_WAITING = "waiting"


@contextlib.contextmanager
def waiting(core: Core, account: str, until_ms: int) -> Iterator[bool]:
    """Whether one more receive of the account may wait until then; counted while it does."""
    bound = core.settings.account_waiting_receives
    if not bound or until_ms - core.now_ms() <= COUNTED_MS:
        yield True
        return
    with counted(core, counts_place(account, _WAITING), until_ms) as waiting_now:
        yield waiting_now <= bound
