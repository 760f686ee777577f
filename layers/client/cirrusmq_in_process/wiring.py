"""A core for a client's process: two tables, a secret of the process, and nothing else of AWS.

The deployment's secret stays in the deployment. Here it makes nothing but the nonces of receives
that may be repeated, and a repetition stays in the process.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from typing import Any, NoReturn

import botocore.session
import msgspec

from cirrusmq.base.limits import DOCUMENT_SECONDS, SLOW_CACHE_MS
from cirrusmq.base.shapes import convert
from cirrusmq.receiving.polling import ROUND_SECONDS
from cirrusmq.runtime.cache import Cache
from cirrusmq.runtime.clock import Clock
from cirrusmq.runtime.core import Core, LeftToService, Settings, Tables
from cirrusmq.runtime.secret import Generations, Secret, written
from cirrusmq.runtime.store import Store
from cirrusmq.wiring.adapters import InParallel
from cirrusmq.wiring.bootstrap import make_dynamodb
from cirrusmq_in_process.allowances import Allowances
from cirrusmq_in_process.clock import WatchedClock
from cirrusmq_in_process.conditions import Conditions
from cirrusmq_in_process.process import Process

KEY_BYTES = 32


class Told(msgspec.Struct, frozen=True):
    """The member `in_process` of `GET /endpoints`."""

    region: str
    directory: str
    messages: str
    account: str
    format: int


def open_process(
    told: Mapping[str, Any], access_key_id: str, look_seconds: float | None = None
) -> Process:
    """The tables that the service names, called with the AWS credentials of this process.

    told: the member `in_process` of `GET /endpoints`; raises ValueError if it is none.
    look_seconds: between two looks of a waiting receive at a partition; None: as the service does.
    Credentials and proxies are found as by any SDK of AWS.
    """
    found = convert(told, Told)
    client = make_dynamodb(botocore.session.get_session(), found.region or None)
    clock = WatchedClock()
    clock.watch(client)
    core = make_core(client, clock, found, look_seconds=look_seconds)
    caller = (found.account, access_key_id)
    return Process(Conditions(core, caller, Allowances(), found.format, clock))


def make_core(
    client: Any,
    clock: Clock,
    told: Told,
    *,
    look_seconds: float | None = None,
    randomness: random.Random | None = None,
    in_parallel: Any = None,
) -> Core:
    """A core on a client of DynamoDB. Other ports raise LeftToService."""
    randomness = randomness or random.SystemRandom()
    document = written(Generations(key=os.urandom(KEY_BYTES).hex(), from_ms=0))
    missing: Any = _left_to_service
    faster = 1.0 if look_seconds is None else ROUND_SECONDS / look_seconds
    return Core(
        store=Store(client, randomness, clock.sleep),
        tables=Tables(directory=told.directory, messages=told.messages, usage=""),
        clock=clock,
        random=randomness,
        # A change of a queue is in force everywhere after this time, or a longer one.
        cache=Cache(clock, 1_000 * DOCUMENT_SECONDS[0], shared=False),
        slow_cache=Cache(clock, SLOW_CACHE_MS, shared=True),
        secret=Secret(clock, lambda: document),
        in_parallel=in_parallel or InParallel(),
        invoke=missing,
        in_own_pool=missing,
        window=missing,
        start_execution=missing,
        post=missing,
        call=missing,
        read_report=missing,
        unprocessed=missing,
        bodies=missing,
        sealing=missing,
        settings=Settings(in_process=True, faster_looks=faster),
    )


def _left_to_service(*_: Any) -> NoReturn:
    raise LeftToService
