"""Wiring: one `Core` for each process, from the environment's variables.

A store call has two attempts if a caller waits for an answer, and five for background work:

    the API's calls      throttled ─ to 0.2 s ─ 503 with `Retry-After`
    what nobody awaits   throttled ─ to 1 s ─ to 2 s ─ to 4 s ─ to 8 s ─ given up, 7.5 s on average

A key at its limit of writes is not helped by callers that sleep, and keep their environments busy:
they get an error with `Retry-After`. Nor does a key stall a shard of the stream: refused parts are
put aside. Sweeps, operations, metering and posts are slowed down by it as they should be: if they
gave up, they would start again from their last saved step.

The SDK's own repeats are off, and we answer its event `needs-retry` with the time to wait. It
counts these attempts like its own: so the store knows that an earlier one may have taken effect.
"""

from __future__ import annotations

import contextlib
import os
import random
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeAlias

import botocore.session
from botocore.exceptions import ConnectionError as NotConnected
from botocore.exceptions import HTTPClientError

from cirrusmq.base.limits import DOCUMENT_SECONDS, SLOW_CACHE_MS
from cirrusmq.runtime.cache import Cache
from cirrusmq.runtime.clock import Clock, SystemClock
from cirrusmq.runtime.core import Core, Settings, Tables
from cirrusmq.runtime.secret import Secret
from cirrusmq.runtime.store import REPEATABLE, Store
from cirrusmq.wiring.adapters import (
    Calls,
    Executions,
    FailureQueue,
    InParallel,
    Invoker,
    KeySealing,
    Posts,
    Reports,
    SecretDocument,
    ThreadWindow,
    awaited_config,
    in_own_pool,
)
from cirrusmq.wiring.bucket import Bucket, make_s3
from cirrusmq.wiring.dynamodb_requests import create_dynamodb

_SHARED_CACHE_MS = 60_000
KIB = 1_024
LONGEST_PAUSES_SECONDS = (0.2,)
"""Longest pause before each further attempt."""
PATIENT_PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0)
_Response: TypeAlias = tuple[Any, Mapping[str, Any]]
"""The HTTP response, and botocore's parsed form of it."""
_pauses: ContextVar[tuple[float, ...]] = ContextVar("pauses", default=LONGEST_PAUSES_SECONDS)
_random = random.SystemRandom()


class _Wiring:
    clock: Clock = SystemClock()
    session: botocore.session.Session | None = None
    client: Any = None
    randomness: random.Random | None = None
    in_parallel: Any = None


_serving: ContextVar[Core | None] = ContextVar("serving", default=None)


def configure(
    *,
    clock: Clock,
    session: botocore.session.Session,
    client: Any,
    randomness: random.Random,
    in_parallel: Any,
) -> None:
    """Sets another clock, session of botocore, client of DynamoDB, randomness and parallel calls.

    Before the first call of `service`. The randomness makes names that nobody may guess.
    """
    _Wiring.clock, _Wiring.session = clock, session
    _Wiring.client, _Wiring.randomness = client, randomness
    _Wiring.in_parallel = in_parallel
    _wire.cache_clear()
    dynamodb.cache_clear()
    _secret_document.cache_clear()


@contextlib.contextmanager
def serving(core: Core) -> Iterator[None]:
    """Serves this core in this context, if one process has several execution environments."""
    before = _serving.set(core)
    try:
        yield
    finally:
        _serving.reset(before)


def service() -> Core:
    """Returns the core of this execution environment: the one being served, else the process's."""
    return _serving.get() or _wire()


@cache
def dynamodb() -> Any:
    """Returns the client by which this process talks to DynamoDB."""
    return _Wiring.client or make_dynamodb(session(), os.environ.get("AWS_REGION"))


def make_dynamodb(session: botocore.session.Session, region: str | None = None) -> Any:
    """Returns a new client of DynamoDB, as the service uses it."""
    # DynamoDB validates each request anyway.
    config = awaited_config(parameter_validation=False)
    client = create_dynamodb(session, region_name=region, config=config)
    limit_attempts(client)
    return client


def session() -> botocore.session.Session:
    """Returns the session of this process, by which clients of AWS are made."""
    return _Wiring.session or botocore.session.get_session()


@cache
def _secret_document() -> SecretDocument:
    """Returns one client for all environments of a process."""
    return SecretDocument(session())


@cache
def _wire() -> Core:
    return wire()


def wire() -> Core:
    """Returns a new core from the environment's variables: nothing remembered, nothing shared."""
    clock = _Wiring.clock
    aws = session()
    settings = _settings()
    shared = os.environ.get("SHARED_CACHES") == "true"
    documents_ms = 1_000 * int(os.environ.get("DOCUMENT_SECONDS") or DOCUMENT_SECONDS[0])
    randomness = _Wiring.randomness or random.SystemRandom()
    store = Store(dynamodb(), randomness, clock.sleep)
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
        cache=Cache(clock, _SHARED_CACHE_MS if shared else documents_ms, shared=shared),
        slow_cache=Cache(clock, SLOW_CACHE_MS, shared=True),
        secret=Secret(clock, _secret_document()),
        invoke=Invoker(aws),
        start_execution=Executions(aws),
        post=Posts(settings),
        call=Calls(aws),
        read_report=Reports(aws),
        unprocessed=FailureQueue(aws),
        bodies=Bucket(lambda: make_s3(aws), os.environ.get("BODIES_BUCKET", ""), clock.sleep),
        sealing=KeySealing(aws),
        settings=settings,
        in_parallel=_Wiring.in_parallel or InParallel(),
        in_own_pool=in_own_pool,
        window=ThreadWindow,
    )


def _settings() -> Settings:
    networks = os.environ.get("ALLOWED_NETWORKS", "").split(",")
    return Settings(
        confirm_endpoints=os.environ.get("CONFIRM_ENDPOINTS") != "false",
        http_endpoints=os.environ.get("HTTP_ENDPOINTS") == "true",
        allowed_networks=tuple(network.strip() for network in networks if network.strip()),
        public_url=os.environ.get("PUBLIC_URL", ""),
        invoke_functions=_functions(os.environ.get("INVOKE_FUNCTIONS", "")),
        functions_by_managers=os.environ.get("INVOKE_FUNCTIONS_BY") == "managers",
        account_requests_per_second=int(os.environ.get("ACCOUNT_REQUESTS_PER_SECOND") or 0),
        account_waiting_receives=int(os.environ.get("ACCOUNT_WAITING_RECEIVES") or 0),
        admin_by_invocation=os.environ.get("ADMIN_CALLS") == "invoke",
        slow_pushes=int(os.environ.get("PUSH_SLOW_CONCURRENCY") or 0),
        workers=int(os.environ.get("INVOKE_CONCURRENCY") or 0),
        offers_in_process=os.environ.get("IN_PROCESS") == "true",
        sqs_partitions=int(os.environ.get("SQS_PARTITIONS") or 0),
        bodies_in_s3_from=KIB * int(os.environ.get("BODIES_IN_S3_FROM") or 0),
    )


def _functions(arns: str) -> dict[str, str]:
    """Returns the ARNs by their part behind `:function:`: a name, and perhaps a version."""
    listed = [arn.strip() for arn in arns.split(",") if arn.strip()]
    return {arn.partition(":function:")[2]: arn for arn in listed}


@contextmanager
def longer_retries() -> Iterator[None]:
    """Allows five attempts of each store call in this context, for work that nobody waits for."""
    before = _pauses.set(PATIENT_PAUSES_SECONDS)
    try:
        yield
    finally:
        _pauses.reset(before)


def max_attempts() -> int:
    """Returns the number of attempts of each store call in this context."""
    return 1 + len(_pauses.get())


def limit_attempts(client: Any) -> None:
    """Makes a client of DynamoDB, without retries of the SDK, repeat calls by these rules."""
    client.meta.events.register("needs-retry.dynamodb", _pause_seconds)


def _pause_seconds(
    attempts: int,
    response: _Response | None,
    caught_exception: Exception | None,
    **_: Any,
) -> float | None:
    """Returns the seconds before the next attempt, by full jitter, or None if it is the last."""
    if attempts >= max_attempts() or not _is_transient(response, caught_exception):
        return None
    return _random.random() * _pauses.get()[attempts - 1]


def _is_transient(response: _Response | None, caught: Exception | None) -> bool:
    if response is None:
        return isinstance(caught, NotConnected | HTTPClientError)
    http, parsed = response
    if http.status_code >= 500 or parsed.get("Error", {}).get("Code") in REPEATABLE:
        return True
    checksum = http.headers.get("x-amz-crc32")
    return checksum is not None and int(checksum) != zlib.crc32(http.content)
