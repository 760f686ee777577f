"""After `os.fork`: gives the child its own connections, workers and locks.

    parent   connections, threads, lingering messages ─────────────────────> goes on, undisturbed
    child    └─ a copy: locks that a thread held, sockets that the parent reads from ─> replaced

The child has only the forking thread. So a lock that another thread held would stay held, and two
processes that read from one socket would get each other's answers.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """An object whose copy a forked child cannot use."""

    def renew(self) -> None:
        """Replaces the parts shared with the parent, without a change to the parent's."""
        ...


_made: WeakSet[Renewable] = WeakSet()


def renew_in_children(made: Renewable) -> None:
    """Renews the object in each process that is forked from now on, as long as it lives."""
    _made.add(made)


def _renew_all() -> None:
    for each in list(_made):
        each.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
