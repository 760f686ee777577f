"""Wiring: one `Core` for each process, from the environment's variables."""

from __future__ import annotations

import contextlib
import contextvars
import os
import random
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from ipaddress import ip_network
from typing import Any, TypeVar

import botocore.session
import msgspec
from pynamodb.connection import Connection

from cirrusmq.cache import Cache
from cirrusmq.clock import Clock, SystemClock
from cirrusmq.core import Core, Posted, Settings, Tables
from cirrusmq.deployment import load_secret
from cirrusmq.limits import CACHE_MS, SLOW_CACHE_MS
from cirrusmq.storage.store import Store

A = TypeVar("A")
B = TypeVar("B")

PARALLEL_CALLS = 16
_SHARED_CACHE_MS = 60_000
_RETRIES = 4


class Invoker:
    """Runs other functions of the deployment, asynchronously, through Lambda's API."""

    def __init__(self, session: botocore.session.Session) -> None:
        self._session = session
        self._client: Any = None

    def __call__(self, role: str, event: dict[str, Any]) -> None:
        """Invoke the function whose name `<ROLE>_FUNCTION` holds."""
        if self._client is None:
            self._client = self._session.create_client("lambda")
        self._client.invoke(
            FunctionName=os.environ[f"{role.upper()}_FUNCTION"],
            InvocationType="Event",
            Payload=msgspec.json.encode(event),
        )


class Executions:
    """Starts executions of the retry schedules' state machine."""

    def __init__(self, session: botocore.session.Session) -> None:
        self._session = session
        self._client: Any = None

    def __call__(self, name: str, given: dict[str, Any]) -> None:
        """Start the execution `name`; one that exists already is this very one."""
        if self._client is None:
            self._client = self._session.create_client("stepfunctions")
        with contextlib.suppress(self._client.exceptions.ExecutionAlreadyExists):
            self._client.start_execution(
                stateMachineArn=os.environ["RETRY_SCHEDULE_ARN"],
                name=name,
                input=msgspec.json.encode(given).decode(),
            )


class _Wiring:
    clock: Clock = SystemClock()
    session: botocore.session.Session | None = None
    provided: Core | None = None


def configure(*, clock: Clock, session: botocore.session.Session) -> None:
    """Use another clock and botocore session; before the first call of `service`."""
    _Wiring.clock, _Wiring.session = clock, session
    _wire.cache_clear()
    connection.cache_clear()


def provide(core: Core | None) -> None:
    """Serve this core from now on, instead of one wired from the environment; None ends that."""
    _Wiring.provided = core


def service() -> Core:
    """The core of this process."""
    return _Wiring.provided or _wire()


@cache
def connection() -> Connection:
    """The PynamoDB connection of this process."""
    return Connection(
        region=os.environ.get("AWS_REGION"),
        max_retry_attempts=_RETRIES,
        max_pool_connections=2 * PARALLEL_CALLS,
        connect_timeout_seconds=2,
        read_timeout_seconds=5,
    )


def dynamodb_clients() -> list[Any]:
    """The botocore clients through which this process talks to DynamoDB."""
    return [connection().client]


@cache
def _wire() -> Core:
    clock = _Wiring.clock
    session = _Wiring.session or botocore.session.get_session()
    settings = _settings()
    shared = os.environ.get("SHARED_CACHES") == "true"
    randomness = random.SystemRandom()
    store = Store(connection(), randomness, clock.sleep)
    tables = Tables(
        directory=os.environ.get("DIRECTORY_TABLE", ""),
        messages=os.environ.get("MESSAGES_TABLE", ""),
        usage=os.environ.get("USAGE_TABLE", ""),
    )
    return Core(
        store=store,
        tables=tables,
        clock=clock,
        random=randomness,
        cache=Cache(clock, _SHARED_CACHE_MS if shared else CACHE_MS, shared=shared),
        slow_cache=Cache(clock, SLOW_CACHE_MS, shared=True),
        secret=cache(lambda: load_secret(store, tables.directory, randomness.randbytes)),
        invoke=Invoker(session),
        start_execution=Executions(session),
        post=_Post(settings),
        settings=settings,
        together=_Together(),
    )


def _settings() -> Settings:
    networks = os.environ.get("ALLOWED_NETWORKS", "").split(",")
    return Settings(
        confirm_endpoints=os.environ.get("CONFIRM_ENDPOINTS") != "false",
        http_endpoints=os.environ.get("HTTP_ENDPOINTS") == "true",
        allowed_networks=tuple(network.strip() for network in networks if network.strip()),
        public_url=os.environ.get("PUBLIC_URL", ""),
    )


class _Post:
    """Posts to endpoints; what that takes is loaded by the first post."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._poster: Any = None

    def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Posted:
        if self._poster is None:
            from cirrusmq.outbound.addresses import AddressPolicy
            from cirrusmq.outbound.client import Poster

            networks = [ip_network(network) for network in self._settings.allowed_networks]
            self._poster = Poster(AddressPolicy(networks))
        outcome: Posted = self._poster.post(url, headers, body)
        return outcome


class _Together:
    """Calls side by side in threads, in the caller's context; a single one stays in its thread."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(PARALLEL_CALLS, thread_name_prefix="store")

    def __call__(self, call: Callable[[A], B], values: Iterable[A]) -> Iterable[B]:
        listed = list(values)
        if len(listed) <= 1:
            return [call(value) for value in listed]
        # A context serves one thread at a time, hence one for each call.
        started = [
            self._threads.submit(contextvars.copy_context().run, call, value) for value in listed
        ]
        return [each.result() for each in started]
