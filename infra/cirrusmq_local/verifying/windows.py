"""Faults of a wave: each has a window, in which a call may have done anything."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence

from cirrusmq_local.judging.history import History
from cirrusmq_local.verifying.record import Options, Outcome
from cirrusmq_local.verifying.remote import LOST


@contextlib.contextmanager
def one_fault(options: Options, outcome: Outcome) -> Iterator[None]:
    """Makes one fault beside. It is undone at the end, also if that is an exception."""
    made = threading.Thread(target=_make_fault, args=(options, outcome), daemon=True)
    made.start()
    try:
        yield
    except BaseException:
        options.over.set()
        raise
    finally:
        made.join()


def _make_fault(options: Options, outcome: Outcome) -> None:
    if not options.faults or options.over.wait(options.play_seconds / 3):
        return
    kind, make = options.faults[len(outcome.windows) % len(options.faults)]
    begun = time.time_ns() // 1_000_000
    try:
        make()
    except Exception as error:
        outcome.errors.append(f"{kind}: {error}")
    outcome.windows.append((kind, begun, time.time_ns() // 1_000_000))
    outcome.faults[kind] += 1


def mark(history: History, windows: Sequence[tuple[str, int, int]]) -> None:
    """A call in a fault's window may have done anything. The history notes both of its ends."""
    for kind, begun, until in windows:
        history.faults += [(begun, kind), (until, f"{kind}: over")]
    for call in history.calls:
        in_one = any(
            call.begun_ms <= until and min(call.ended_ms, call.begun_ms + 60_000) >= begun
            for _, begun, until in windows
        )
        if in_one and LOST not in call.faults:
            call.faults.append(LOST)
