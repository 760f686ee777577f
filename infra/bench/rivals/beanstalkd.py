"""A tube of beanstalkd, with a log that is synced at each write."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence

import greenstalk

from . import NotInstalled, Service
from .servers import free_port, run_server, wait_for_port

Address = tuple[str, int]


class BeanstalkTube:
    """A tube over one connection."""

    def __init__(self, address: Address, name: str) -> None:
        self._client = greenstalk.Client(address, use=name, watch=name)

    def create(self) -> None:
        """Does nothing: tubes need not be made."""

    def send(self, bodies: Sequence[str]) -> None:
        """Puts each message: the protocol has no batches."""
        for body in bodies:
            self._client.put(body)

    def take(self, limit: int) -> int:
        """Makes one reserve and one delete."""
        try:
            job = self._client.reserve(timeout=0)
        except greenstalk.TimedOutError:
            return 0
        self._client.delete(job)
        return 1

    def consume(self, count: int, handle: Callable[[str], None]) -> None:
        """Reserves with a blocking call."""
        for _ in range(count):
            job = self._client.reserve()
            handle(str(job.body))
            self._client.delete(job)

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()


@contextlib.contextmanager
def _running() -> Iterator[Address]:
    program = shutil.which("beanstalkd")
    if program is None:
        raise NotInstalled("beanstalkd (Debian: beanstalkd)")
    address = ("127.0.0.1", free_port())
    with tempfile.TemporaryDirectory() as log:
        command = [program, "-l", address[0], "-p", str(address[1]), "-b", log, "-f0"]
        with run_server(command, lambda: wait_for_port(address)):
            yield address


SERVICE = Service(
    name="beanstalkd",
    send_batch=1,
    take_batch=1,
    running=_running,
    queue=BeanstalkTube,
)
