"""Looking up the addresses of a host, within a bound on time, and checking every one of them."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from cirrusmq.webhooks.addresses import Address, AddressPolicy
from cirrusmq.webhooks.urls import Endpoint

Resolver = Callable[..., list[Any]]
"""A function like `socket.getaddrinfo`."""

LOOKUPS = 64
"""Lookups under way at a time, with the lookups whose attempt has timed out."""


class LookupFailed(Exception):
    """The name has no address."""


class Resolution:
    """Finds the addresses of an endpoint at every call, and lets none pass unchecked."""

    def __init__(self, policy: AddressPolicy, resolver: Resolver) -> None:
        self._policy = policy
        self._resolver = resolver
        self._lookups = threading.BoundedSemaphore(LOOKUPS)

    def addresses(self, endpoint: Endpoint, deadline: float) -> list[Address]:
        """Returns the addresses of `endpoint`, all checked, at least one, in the resolver's order.

        Raises `Refused` if any of them may not be reached, `LookupFailed`, and `TimeoutError` at
        `deadline`, a time of the monotonic clock.
        """
        literal = endpoint.address
        found = [literal] if literal is not None else self._look_up(endpoint, deadline)
        for address in found:
            self._policy.check(address)
        return found

    def _look_up(self, endpoint: Endpoint, deadline: float) -> list[Address]:
        """Asks the resolver in a separate thread: the system's takes no limit on its time.

        The thread of an abandoned lookup ends when the resolver does, and keeps no process alive.
        """
        answers: queue.SimpleQueue[list[Address] | Exception] = queue.SimpleQueue()

        def look_up() -> None:
            try:
                answers.put(self._ask(endpoint))
            except Exception as error:
                answers.put(error)
            finally:
                self._lookups.release()

        if not self._lookups.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise TimeoutError
        try:
            threading.Thread(target=look_up, name="lookup", daemon=True).start()
        except RuntimeError as error:
            self._lookups.release()
            raise LookupFailed from error
        try:
            answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(answer, Exception):
            raise LookupFailed from answer
        if not answer:
            raise LookupFailed
        return answer

    def _ask(self, endpoint: Endpoint) -> list[Address]:
        entries = self._resolver(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(ip_address(entry[4][0]) for entry in entries))
