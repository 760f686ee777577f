"""beanstalkd, with a log that is synced at each write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import greenstalk

from ...rivals.servers import free_port
from .. import QUEUE, Peer, Place, Terms
from ..program import Program, find


class Tube:
    """One connection."""

    def __init__(self, place: Place, terms: Terms) -> None:
        self._terms = terms
        self._client = greenstalk.Client(("127.0.0.1", place.port), use=QUEUE, watch=QUEUE)

    def send(self, body: str) -> None:
        """Puts a job."""
        self._client.put(body, ttr=self._terms.lease_seconds)

    def work(self, handle: Callable[[str], bool]) -> None:
        """Reserves with a blocking call."""
        while True:
            job = self._client.reserve()
            if handle(str(job.body)):
                self._client.delete(job)
            else:
                self._client.release(job, delay=self._terms.retry_seconds)

    def hold(self, count: int, wait: Callable[[], None]) -> list[str]:
        """Reserves jobs one by one."""
        held = [self._client.reserve() for _ in range(count)]
        wait()
        for job in held:
            self._client.delete(job)
        return [str(job.body) for job in held]

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()


def _server(folder: Path) -> Program:
    port = free_port()
    command = [find("beanstalkd", "beanstalkd"), "-l", "127.0.0.1", "-p", str(port)]
    return Program([*command, "-b", str(folder), "-f0"], port, folder.parent / "server.log")


def _create(place: Place, terms: Terms) -> None:
    """Does nothing: tubes need not be made."""


PEER = Peer(
    name="beanstalkd",
    durable="fsync before each answer",
    server=_server,
    create=_create,
    client=Tube,
)
