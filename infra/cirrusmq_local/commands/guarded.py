"""`cirrusmq` that ends with the run that started it: `python -m …guarded up …`.

run ──pipe── guard, a child of the service
 x kill -9 ── end of the pipe ── guard: kill -9 ──> service

The guard is another process, because a service that is stopped (SIGSTOP) cannot end itself.
"""

from __future__ import annotations

import os
import signal


def begin() -> None:
    """Start the guard of this process. Its standard input is the pipe; it has one thread yet."""
    service = os.getpid()
    if os.fork() == 0:
        _guard(service)


def _guard(service: int) -> None:
    # The run reads the service's output to its end, which the guard must not hold open.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while os.read(0, 1):
        pass
    if os.getppid() == service:  # else it has ended, and its id may be another's
        os.kill(service, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    begin()
    from cirrusmq_local.commands.cli import main

    main()
