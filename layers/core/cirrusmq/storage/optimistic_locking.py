"""Changing what others may change at the same time: read, write if nothing changed, else again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cirrusmq.base.errors import Unavailable

if TYPE_CHECKING:
    from cirrusmq.runtime.core import Core

_TRIES = 8


def tries(core: Core) -> Iterator[None]:
    """A turn for each try to read and write; pauses between them keep writers apart that met once.

    Whoever was too slow in every turn raises `contended()`.
    """
    for tried in range(_TRIES):
        if tried:
            core.store.pause(tried)
        yield


def contended() -> Unavailable:
    """The refusal of a change that others kept from taking effect."""
    return Unavailable("Others are changing it at the same time; repeat the call.")
