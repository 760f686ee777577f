"""Optimistic locking: read, write if nothing changed since, else read again.

A: reads version 3 ── writes version 4
B: reads version 3 ── version 3 still? no ── pauses, reads version 4 ── writes version 5
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from cirrusmq.base.errors import CirrusMQError, Unavailable
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused
from cirrusmq.storage.directory import ItemKey

T = TypeVar("T")
_TRIES = 8


class DirectoryChange(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A planned change of the Directory, based on values that were read."""

    result: T
    """The caller's result when the change is written."""
    writes: Sequence[dict[str, Any]] = ()
    """One transaction, refused if something changed since; empty if there is nothing to write."""
    refusals: Mapping[int, CirrusMQError] = {}
    """Number of a write -> the error to raise if its condition does not hold."""
    keys: Sequence[ItemKey] = ()
    """Keys of values that caches may still have from before."""


def change(core: Core, plan: Callable[[], DirectoryChange[T]]) -> T:
    """Writes the change that `plan` makes of its reads; in force everywhere when this returns.

    Pauses between the tries keep conflicting writers apart. Raises Unavailable if others were
    faster in every try.
    """
    for tried in range(_TRIES):
        if tried:
            core.store.pause(tried)
        planned = plan()
        if not planned.writes:
            return planned.result
        try:
            core.store.transact(planned.writes)
        except TransactionRefused as refused:
            for number, error in planned.refusals.items():
                if number in refused.failed:
                    raise error from refused
            continue
        if planned.keys:
            core.cache.turn_over(*planned.keys)
        return planned.result
    raise Unavailable("Too many concurrent changes; try again.")
