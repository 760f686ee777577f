"""A client's process: the calls that may be made here."""

from __future__ import annotations

import re

from cirrusmq_in_process.calls import Call
from cirrusmq_in_process.conditions import Conditions

_PATH = re.compile(r"/queues/([A-Za-z0-9_-]{1,80})/messages(?:/(receive|delete|visibility))?")


class Process:
    """The calls that one client may make on the tables. Safe for several threads."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions

    def begin(self, method: str, path: str) -> Call | None:
        """A call with its repetitions; None if calls of this path are never made here."""
        found = _PATH.fullmatch(path) if method == "POST" else None
        return None if found is None else Call(self._conditions, found[1], found[2] or "send")

    def close(self) -> None:
        """Ends waits."""
        self._conditions.close()
