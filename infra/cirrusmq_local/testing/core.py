"""The core of a world: over the embedded engine, in one thread, without a network."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

from botocore.session import Session, get_session

from cirrusmq.base.limits import CACHE_MS, SLOW_CACHE_MS
from cirrusmq.runtime.cache import Cache
from cirrusmq.runtime.core import Called, Core, Posted, Sealing, Settings, Tables, Unprocessed
from cirrusmq.runtime.secret import Generations, Secret
from cirrusmq.runtime.store import Store
from cirrusmq.wiring.bootstrap import KIB, make_dynamodb
from cirrusmq.wiring.bucket import Bucket, make_s3
from cirrusmq_local.bucket.attachment import Answering, attach_bucket
from cirrusmq_local.cloud.cloudformation import ACCOUNT_ID
from cirrusmq_local.cloud.guard import GuardedEngine
from cirrusmq_local.cloud.invocation import running
from cirrusmq_local.engine import Engine, EngineClient, attach
from cirrusmq_local.testing.clock import ManualClock

FUNCTION = "handler"
"""The function that queues may invoke."""
FUNCTION_ARN = f"arn:aws:lambda:local:{ACCOUNT_ID}:function:{FUNCTION}"
A = TypeVar("A")
B = TypeVar("B")


def make_core(
    engine: Engine,
    tables: Tables,
    clock: ManualClock,
    chance: random.Random,
    *,
    shared_caches: bool,
    invoke: Callable[[str, dict[str, Any]], None],
    start_execution: Callable[[str, dict[str, Any]], None],
    post: Callable[[str, Mapping[str, str], bytes], Posted],
    call: Callable[[str, bytes, float], Called],
    read_report: Callable[[str], bytes | None],
    unprocessed: Unprocessed,
    read_secret: Callable[[], str],
    bucket: Answering,
    bucket_name: str,
    bodies_in_s3_from: int,
    sealing: Sealing,
    by_sdk: bool,
    denied: list[str],
) -> Core:
    """Returns a core over the engine, the bucket and the clock; callables stand for other services.

    `bodies_in_s3_from`: KiB, as the template's parameter. `by_sdk`, `denied`: as of `World`.
    """
    # The template's policies are applied: a call that they do not allow fails here first.
    guarded = GuardedEngine(engine, denied)
    store = Store(_sdk_client(guarded) if by_sdk else EngineClient(guarded), chance, clock.sleep)
    life_ms = SLOW_CACHE_MS if shared_caches else CACHE_MS
    return Core(
        store=store,
        tables=tables,
        clock=clock,
        random=chance,
        cache=Cache(clock, life_ms, shared=shared_caches),
        slow_cache=Cache(clock, SLOW_CACHE_MS, shared=True),
        secret=GuardedSecret(clock, read_secret),
        invoke=invoke,
        in_parallel=_one_by_one,
        in_own_pool=_one_by_one,
        window=InTurn,
        start_execution=start_execution,
        post=post,
        call=call,
        read_report=read_report,
        unprocessed=unprocessed,
        bodies=Bucket(lambda: _s3(bucket), bucket_name, clock.sleep),
        sealing=sealing,
        real_seconds=lambda: clock.now_ms() // 1000,
        settings=Settings(
            confirm_endpoints=False,
            http_endpoints=True,
            allowed_networks=("127.0.0.0/8",),
            invoke_functions={FUNCTION: FUNCTION_ARN},
            bodies_in_s3_from=bodies_in_s3_from * KIB,
        ),
    )


class GuardedSecret(Secret):
    """The secret, only for functions whose policies allow reading it."""

    def generations(self) -> Generations:
        """Returns both generations."""
        invocation = running.get()
        if invocation is not None and not invocation.function.may(
            "secretsmanager:GetSecretValue", "Secret"
        ):
            raise PermissionError(f"{invocation.function.name} may not read the secret")
        return super().generations()


@cache
def _session() -> Session:
    """Returns the process's session, made once because that takes long."""
    return get_session()


def _sdk_client(engine: GuardedEngine) -> Any:
    """Returns the client that is deployed, with the engine in the place of the network."""
    client = make_dynamodb(_session(), "us-east-1")
    attach(cast(Engine, engine), client)
    return client


def _s3(bucket: Answering) -> Any:
    """Returns a client whose calls the bucket answers."""
    client = make_s3(_session())
    attach_bucket(bucket, client)
    return client


class InTurn:
    """A window of parallel calls that run one after the other, in the order of their start."""

    def __init__(self, limit: int) -> None:
        self._begun: deque[Callable[[], Any]] = deque()

    def __enter__(self) -> InTurn:
        return self

    def __exit__(self, *raised: object) -> None:
        self._begun.clear()

    def start(self, call: Callable[[], Any]) -> None:
        """Starts a call."""
        self._begun.append(call)

    def wait(self, seconds: float) -> list[Any]:
        """Returns the results of the next call."""
        return [self._begun.popleft()()] if self._begun else []


def _one_by_one(call: Callable[[A], B], values: Iterable[A]) -> Iterable[B]:
    return [call(value) for value in values]
