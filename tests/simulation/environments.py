"""Execution environments: each with a clock, caches and hints of its own, and one call at a time.

    send     ~1 ──call──call──x          ~3 ──call──
    receive        ~2 ──call──────call──────

Nothing is shared between two of them but the store.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tests.simulation.stage import Actor, Stage
from tests.simulation.wire import Crashed

from cirrusmq.base.limits import CACHE_MS, SLOW_CACHE_MS
from cirrusmq.runtime.cache import Cache
from cirrusmq.runtime.core import Core, Settings
from cirrusmq.runtime.store import Store
from cirrusmq_local.cloud.functions import load_handler
from cirrusmq_local.cloud.invocation import Handler
from cirrusmq_local.cloud.sealing import KEY_BYTES, GuardedSealing, SealingKey
from cirrusmq_local.cloud.template import Function
from cirrusmq_local.cloud.unprocessed import UnprocessedQueue
from cirrusmq_local.judging.clients import CallName, Client
from cirrusmq_local.judging.history import Call
from cirrusmq_local.testing.core import FUNCTION, FUNCTION_ARN

if TYPE_CHECKING:
    from tests.simulation.deployment import Deployment


class SkewedClock:
    """The clock of one machine: the stage's, and its own error."""

    scale = 1.0

    def __init__(self, stage: Stage, skew_ms: int) -> None:
        self._stage = stage
        self._skew_ms = skew_ms
        self.sleep = stage.sleep

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as this machine believes."""
        return self._stage.now_ms() + self._skew_ms


class Environment:
    """One execution environment of a function: it may end at any call of the store."""

    def __init__(
        self, deployment: Deployment, name: str, handler: Handler | None, skew_ms: int = 0
    ) -> None:
        self.deployment = deployment
        self.name = name
        self.client = Client(name)
        """The client whose call it works on."""
        self.under_way: Call
        """The call that it works on, or did last."""
        self._written_ms: WeakKeyDictionary[Actor, int] = WeakKeyDictionary()
        """When each of its threads, or one that it waits for, last began to write an item."""
        self.skew_ms = skew_ms
        self.ended = False
        self._deadline_ms = 1 << 60
        self.core = self._start(SkewedClock(deployment.stage, skew_ms))
        self.handler = handler

    def allow_until(self, deadline_ms: int) -> None:
        """The function called now is stopped at that time."""
        self._deadline_ms = deadline_ms

    def remaining_ms(self) -> int:
        """Milliseconds left until then."""
        return max(0, self._deadline_ms - self.deployment.stage.now_ms())

    def on_call(self, operation: str) -> None:
        """Takes note of the calls after which posts are made."""
        actor = self.deployment.stage.current if operation == "UpdateItem" else None
        while actor is not None:
            self._written_ms[actor] = self.deployment.stage.now_ms()
            actor = actor.parent

    @property
    def written_ms(self) -> int:
        """When the thread that waits for the running one last began to write an item, 0: never.

        The deliveries of an invocation have a thread each, and their posts have threads of theirs.
        """
        actor = self.deployment.stage.current
        parent = None if actor is None else actor.parent
        return 0 if parent is None else self._written_ms.get(parent, 0)

    def name_call(self) -> CallName:
        """The name of the next store call."""
        return self.client.name_call()

    def crash(self) -> Crashed:
        """End, so that no `finally` of the product gets anything done any more."""
        self.ended = True
        return Crashed()

    def check_alive(self) -> None:
        """Raises Crashed where the environment, or the time of its function, is over."""
        if self.ended or self.deployment.stage.now_ms() > self._deadline_ms:
            raise Crashed

    def note(self, fault: str, operation: str) -> None:
        """Note the fault of a store call."""
        self.under_way.faults.append(f"{operation}: {fault}")
        what = f"{self.client.name:<12} {operation}: {fault}"
        self.deployment.history.faults.append((self.deployment.stage.now_ms(), what))

    def _start(self, clock: SkewedClock) -> Core:
        """The core as `bootstrap` wires it in the cloud: no cache is shared."""
        deployment = self.deployment
        chance = Random(deployment.chaos.draw(self.name, -2))
        wire = deployment.wire(
            deployment.stage, deployment.engine, deployment.chaos, self, deployment.written
        )
        store = Store(wire, chance, clock.sleep)
        return Core(
            store=store,
            tables=deployment.tables,
            clock=clock,
            random=chance,
            cache=Cache(clock, CACHE_MS, shared=False),
            slow_cache=Cache(clock, SLOW_CACHE_MS, shared=True),
            secret=deployment.secret.known_to(self, clock),
            invoke=lambda role, event: deployment.invoke(self, role, event),
            in_parallel=deployment.in_parallel,
            in_own_pool=deployment.side_by_side,
            window=deployment.stage.window,
            start_execution=lambda name, given: deployment.start_execution(self, name, given),
            post=lambda url, headers, body: deployment.post(self, url, headers, body),
            call=lambda arn, event, seconds: deployment.call(self, arn, event, seconds),
            read_report=lambda path: None,
            unprocessed=UnprocessedQueue(clock.now_ms),
            real_seconds=lambda: deployment.stage.now_ms() // 1000,
            bodies=deployment.bucket.used_by(self),
            sealing=GuardedSealing(SealingKey(bytes(KEY_BYTES))),
            settings=Settings(
                confirm_endpoints=False,
                http_endpoints=True,
                invoke_functions={FUNCTION: FUNCTION_ARN},
                bodies_in_s3_from=deployment.objects_from,
                slow_pushes=deployment.slow_pushes,
                workers=deployment.workers,
            ),
        )


_loaded: dict[str, Handler] = {}


def _load(function: Function) -> Handler:
    """The function's handler, loaded once: all that one environment remembers is in its core."""
    if function.name not in _loaded:
        _loaded[function.name] = load_handler(function)
    return _loaded[function.name]


class Fleet:
    """The environments of one function: an idle one takes the next call, else a new one."""

    def __init__(self, deployment: Deployment, role: str, function: Function) -> None:
        self._deployment = deployment
        self._role = role
        self._handler = _load(function)
        self._idle: list[Environment] = []

    def take(self, name: CallName) -> Environment:
        """An environment for the call of this name."""
        chaos = self._deployment.chaos
        draw = chaos.draw(name.actor, name.step, name.call, 11)
        if not self._idle or draw % 100 < self._deployment.turnover:
            unique = f"{self._role}~{name.actor}.{name.step}.{name.call}"
            skew_ms = 0
            if self._deployment.max_skew_ms:
                span_ms = 2 * self._deployment.max_skew_ms + 1
                skew_ms = chaos.draw(unique, -3) % span_ms - self._deployment.max_skew_ms
            return Environment(self._deployment, unique, self._handler, skew_ms)
        return self._idle.pop((draw >> 8) % len(self._idle))

    def give_back(self, environment: Environment, name: CallName) -> None:
        """Its call is over; some environments are ended then."""
        draw = self._deployment.chaos.draw(name.actor, name.step, name.call, 12)
        if not environment.ended and draw % 100 >= self._deployment.turnover // 2:
            self._idle.append(environment)


class Context:
    """A handler's context of its invocation."""

    def __init__(self, environment: Environment, function: Function, request_id: str) -> None:
        self.function_name = function.name
        self.memory_limit_in_mb = function.memory_mb
        self.invoked_function_arn = function.arn
        self.aws_request_id = request_id
        self.less_ms = 0
        """Told to be gone already, so that long work is done in short runs too."""
        self._environment = environment

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function is stopped."""
        return max(0, self._environment.remaining_ms() - self.less_ms)


Event = dict[str, Any]
