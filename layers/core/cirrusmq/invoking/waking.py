"""Waking a worker, in the function `call`, that calls a source's function with its messages.

A worker is woken by the id of any source of a group, or by the group's own.
"""

from __future__ import annotations

from collections.abc import Iterable

from cirrusmq.runtime.core import Core

_TRIES = 3


def wake(core: Core, source_id: str, hops: int = 0) -> None:
    """Starts a worker for a source; `hops` invocations in a row have led to this one."""
    core.invoke("call", {"invoke": {"source": source_id, "hops": hops}})


def wake_all(core: Core, source_ids: Iterable[str]) -> list[Exception]:
    """Starts a worker for each. Returns the errors; the sweep starts the missing workers."""
    failures = core.in_parallel(lambda source_id: _try(core, source_id), sorted(set(source_ids)))
    return [error for error in failures if error is not None]


def _try(core: Core, source_id: str) -> Exception | None:
    failure: Exception | None = None
    for _ in range(_TRIES):
        try:
            wake(core, source_id)
        except Exception as error:
            failure = error
        else:
            return None
    return failure
