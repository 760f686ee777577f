"""After `os.fork`: the child begins with connections, workers and locks of its own.

    parent   connections, threads, what lingers ──────────────────────────> goes on, undisturbed
    child    └─ a copy: locks that a thread held, sockets that the parent reads from ─> replaced

The child has one thread, the one that forked. So a lock that another thread held would stay held,
and two processes that read from one socket would get each other's answers.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """What a child cannot use as it was copied."""

    def renew(self) -> None:
        """Replace what the copy shares with the parent, without touching what is replaced."""
        ...


_made: WeakSet[Renewable] = WeakSet()


def renew_in_children(made: Renewable) -> None:
    """Have the object renewed in each process that is forked from now on, as long as it lives."""
    _made.add(made)


def _renew_all() -> None:
    for each in list(_made):
        each.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
