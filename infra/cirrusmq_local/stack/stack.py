"""The whole service in one process, wired from `template.yaml`."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cirrusmq.access import keys
from cirrusmq.base.errors import Unavailable
from cirrusmq.base.timestamps import format_time
from cirrusmq.wiring import bootstrap
from cirrusmq_lambda import figures
from cirrusmq_lambda.problems import problem
from cirrusmq_local.bucket import Bucket
from cirrusmq_local.cloud.aws import make_session
from cirrusmq_local.cloud.buckets import bodies_bucket, open_bucket
from cirrusmq_local.cloud.clock import ScaledClock
from cirrusmq_local.cloud.environments import (
    Environments,
    Layout,
    SeparateEnvironments,
    SharedEnvironment,
    start_environment,
)
from cirrusmq_local.cloud.executions import Executions
from cirrusmq_local.cloud.functions import Functions, split_name
from cirrusmq_local.cloud.guard import GuardedBucket, GuardedEngine
from cirrusmq_local.cloud.invocation import Handler
from cirrusmq_local.cloud.own_functions import arns, as_function
from cirrusmq_local.cloud.parallel import AsideBucket, Together
from cirrusmq_local.cloud.pump import LambdaRecord, Pump
from cirrusmq_local.cloud.randomness import DrawnAhead
from cirrusmq_local.cloud.routing import Router
from cirrusmq_local.cloud.schedules import Repeater
from cirrusmq_local.cloud.sealing import SealingKey
from cirrusmq_local.cloud.tables import table_specs
from cirrusmq_local.cloud.template import (
    ALL_DIALECTS,
    API,
    DIALECT_API,
    TEMPLATE,
    Function,
    Route,
    StreamSource,
    load,
)
from cirrusmq_local.cloud.unprocessed import UnprocessedQueue
from cirrusmq_local.engine import Engine, EngineClient
from cirrusmq_local.engine.data_errors import DataError, explain_store, naming
from cirrusmq_local.engine.errors import OtherFormError
from cirrusmq_local.stack.data import DataFolder
from cirrusmq_local.stack.gateway import URLS, Gateway
from cirrusmq_local.stack.introduction import ACCOUNT, introduce
from cirrusmq_local.stack.local_routes import FUNCTION_NAME, ROUTES, LocalRoutes
from cirrusmq_local.stack.logfile import LogFile
from cirrusmq_local.stack.metrics import Metrics, count_errors
from cirrusmq_local.stack.recovery import release_posts, release_slots
from cirrusmq_local.stack.sealing_file import SealingFile
from cirrusmq_local.stack.secret_file import SecretFile
from cirrusmq_local.stack.server import AddressError, Server
from cirrusmq_local.stack.stand_in import PORT, keep_known_key
from cirrusmq_local.stack.surroundings import (
    allow_many_connections,
    set_environment,
    spare_what_is_loaded,
)
from cirrusmq_local.stack.trouble import Trouble
from cirrusmq_local.stack.unread import give_back_unread
from cirrusmq_local.stack.upkeep import UPKEEP_SECONDS, Upkeep

TOLD_AHEAD_MS = 2_000
"""If the stack's time is further ahead, an `attempt` by a client's own clock is refused."""
GIVING_WAY = {"send", "receive", "delete", "publish"}
"""Folders of the functions that wait for the store and the clock alone."""
_log = logging.getLogger(__name__)


class Stack:
    """The service on one machine, from `start` until `stop`. One in a process."""

    def __init__(
        self,
        data: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        scale: float = 1.0,
        template: Path = TEMPLATE,
        tell: Callable[[str], None] = lambda line: None,
        give_up: Callable[[str], None] = lambda reason: None,
        environments: Layout = "shared",
        own_functions: Mapping[str, Handler] | None = None,
        direct_urls: bool = False,
        in_process: bool = False,
        dialect_port: int | None = None,
        stand_in: bool = False,
    ) -> None:
        """`tell` gets lines for the user, `give_up` the reason why the stack must be stopped.

        `own_functions`: functions that queues may invoke, by name. `direct_urls`: True if
        functions have their own URLs. `in_process`: True if clients learn the tables.
        `dialect_port`: the port for the SDKs of other services,
        0 for none; None takes the port after `port` if it is free. `stand_in`: True if they are
        answered at the port of emulators, and the key `test` is good.
        """
        self._data = DataFolder(data)
        self._secret = SecretFile(self._data.secret)
        self._tell = tell
        self._give_up = give_up
        self._trouble = Trouble(self._data.path, tell)
        self._host = host
        self._port = port
        if stand_in and dialect_port is None:
            dialect_port = PORT
        self._stand_in = stand_in
        self._dialect_port = dialect_port
        self._dialects: Server | None = None
        self._scale = scale
        self._own_functions = own_functions or {}
        parameters = {"InvokeFunctions": arns(self._own_functions)}
        if direct_urls:
            parameters["DirectUrls"] = "true"
        if in_process:
            parameters["InProcess"] = "true"
        if dialect_port != 0:
            parameters["Dialects"] = ALL_DIALECTS
        self._template = load(template, parameters)
        self._layout = environments
        self._ending = contextlib.ExitStack()
        self._threads: list[threading.Thread] = []
        self._next_port = 0
        self._damaged = False
        """True if this start lost a part of the store."""

    @property
    def url(self) -> str:
        """The URL of the API."""
        return self._url_at(self._port)

    @property
    def dialect_url(self) -> str | None:
        """The URL for the SDKs of other services, or None if they are not served."""
        return self._url_at(self._dialects.port) if self._dialects else None

    @property
    def connection_file(self) -> Path:
        """The file with the id and the secret of the account's first key."""
        return self._data.connection

    def _url_at(self, port: int) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Starts everything. Returns when requests are answered.

        Raises DataError, AddressError, TemplateError.
        """
        with contextlib.ExitStack() as ending:
            self._start(ending)
            # Nothing failed: the parts that were started now end with `stop`.
            self._ending = ending.pop_all()

    def stop(self) -> None:
        """Ends everything, calls under way first. May be called twice."""
        self._ending.close()

    def _start(self, ending: contextlib.ExitStack) -> None:
        allow_many_connections()
        self._data.lock()
        ending.callback(self._data.unlock)
        self._clock = clock = ScaledClock(self._data.clock, self._scale)
        # If the start fails, no thread sleeps on this clock any longer.
        ending.callback(clock.stop)
        set_environment(self._template, self._data, self._layout, stand_in=self._stand_in)
        engine = self._open_engine(ending)
        clock.start_after(engine.newest_write_ms())
        with naming(self._data.clock):
            clock.keep()
        bucket = self._open_bucket()
        sealing = SealingFile(self._data.sealing)
        functions = self._load_functions(engine, bucket, sealing.key, ending)
        release_posts(bootstrap.service(), ACCOUNT)
        release_slots(bootstrap.service())
        self._metrics = self._keep_metrics(engine, ending)
        pumps = self._make_pumps(engine, functions)
        repeaters = [
            Repeater(each, functions.run_in_turn, clock) for each in self._template.schedules
        ]
        functions.add(*self._local_function(engine, pumps, repeaters))
        server = self._make_server(functions, ending)
        self._dialects = self._make_dialect_server(functions, ending)
        os.environ["PUBLIC_URL"] = self.url
        os.environ["DIRECT_URLS"] = ",".join(
            f"{name}={self.url}{URLS}/{name}" for name in self._urls()
        )
        self._spawn(lambda: clock.keep_until_stopped(self._note_failure))
        upkeep = Upkeep(
            *(engine, bucket, self._template, self._data, self._trouble, clock),
            UPKEEP_SECONDS * self._scale,
        )
        self._spawn(lambda: upkeep.watch_folder(self._give_up))
        for pump in pumps:
            self._spawn(pump.run_until_stopped)
        for repeater in repeaters:
            self._spawn(repeater.run_until_stopped)
        self._spawn(lambda: upkeep.keep_up(pumps))
        introduce(
            self._template,
            functions,
            self._data,
            self.url,
            self.dialect_url,
            sealed_anew=sealing.is_new,
        )
        keep_known_key(bootstrap.service(), ACCOUNT, wanted=self._stand_in)
        server.start()
        if self._dialects is not None:
            self._dialects.start()
        self._spawn(self._warm_up)
        if clock.started_ahead_ms > TOLD_AHEAD_MS:
            self._tell(
                f"{self._data.path}: its time is {format_time(clock.now_ms())}, ahead of this"
                " machine's, and goes on from there: for the time of today take another --data"
            )

    def _warm_up(self) -> None:
        self._executions.warm_up()
        spare_what_is_loaded()

    def _open_engine(self, ending: contextlib.ExitStack) -> Engine:
        self._data.check_store()
        try:
            engine = Engine(
                self._data.store,
                table_specs(self._template),
                now_ms=self._clock.now_ms,
                on_failure=self._note_store_failure,
                on_damage=self._note_damage,
            )
        except (sqlite3.Error, OtherFormError) as error:
            raise DataError(explain_store(self._data.store, error)) from error
        ending.callback(engine.close)
        self._secret.begin(engine, self._template.environment()["DIRECTORY_TABLE"])
        return engine

    def _open_bucket(self) -> Bucket:
        with naming(self._data.bodies):
            declaration = bodies_bucket(self._template)
            return open_bucket(
                declaration, self._data.bodies, self._clock.now_ms, self._note_failure
            )

    def _note_failure(self, error: OSError) -> None:
        if self._data.missing() is None:  # else the service is about to end
            self._trouble.note(error)

    def _note_damage(self, sentence: str) -> None:
        self._damaged = True
        self._tell(sentence)

    def _known_damage(self) -> str | None:
        return self._data.damage(now=self._damaged)

    def _note_store_failure(self, error: sqlite3.Error) -> None:
        self._trouble.note_store(self._data.store.name, error)

    def _load_functions(
        self, engine: Engine, bucket: Bucket, sealing: SealingKey, ending: contextlib.ExitStack
    ) -> Functions:
        log = self._open_log(self._data.log, ending)
        # Functions write their logs to standard output; here that belongs to the command.
        ending.enter_context(contextlib.redirect_stdout(log))
        ending.callback(_log_into(log))
        journal = self._open_log(self._data.executions, ending)
        executions = Executions(
            self._template.machines,
            # Step Functions retries an invocation that is throttled.
            lambda name, event: functions.run_in_turn(split_name(name)[0], event),
            self._clock,
            journal,
        )
        with naming(self._data.unprocessed):
            self._unprocessed = UnprocessedQueue(self._clock.now_ms, self._data.unprocessed)
        session = make_session(
            lambda: functions,
            lambda: executions,
            self._unprocessed,
            self._secret.read,
            AsideBucket(GuardedBucket(bucket, bodies_bucket(self._template))),
            sealing,
        )
        client = EngineClient(GuardedEngine(engine))
        bootstrap.configure(
            clock=self._clock,
            session=session,
            client=client,
            randomness=DrawnAhead(),
            in_parallel=Together(),
        )
        environments: Environments = SharedEnvironment()
        if self._layout == "cloud":
            environments = SeparateEnvironments(start_environment)
        functions = Functions.load(self._template.functions, environments)
        for name, handler in self._own_functions.items():
            functions.add(as_function(name), handler)
        # All users of the engine have to end before it closes.
        ending.callback(self._join)
        ending.callback(executions.stop)
        ending.callback(functions.stop)
        self._executions = executions
        return functions

    def _keep_metrics(self, engine: Engine, ending: contextlib.ExitStack) -> Metrics:
        metrics = Metrics(engine.capacity)
        ending.callback(count_errors(metrics))
        figures.send_to(metrics.tell)
        ending.callback(figures.send_to, None)
        return metrics

    def _open_log(self, path: Path, ending: contextlib.ExitStack) -> LogFile:
        with naming(path):
            log = LogFile(path, failed=self._note_failure)
        ending.callback(log.close)
        return log

    def _make_pumps(self, engine: Engine, functions: Functions) -> list[Pump]:
        return [
            Pump(source, engine, functions.run, self._park, self._clock)
            for source in self._template.streams
        ]

    def _park(self, source: StreamSource, records: Sequence[LambdaRecord]) -> None:
        _log.error("%s gave up on %d records", source.function, len(records))
        self._unprocessed.give_up(source, records)

    def _local_function(
        self, engine: Engine, pumps: Sequence[Pump], repeaters: Sequence[Repeater]
    ) -> tuple[Function, LocalRoutes]:
        folders = {function.name: function.folder.name for function in self._template.functions}
        runs: dict[str, Callable[[], None]] = {
            folders[repeater.schedule.function]: repeater.run_now for repeater in repeaters
        }
        runs |= {folders[pump.source.function]: pump.flush for pump in pumps}
        runs = {name: partial(self._run_unless_in_trouble, run) for name, run in runs.items()}
        routes = LocalRoutes(
            engine,
            [table.name for table in self._template.tables],
            self._data.exports,
            runs,
            lambda: self._secret.turn_over(self._clock.now_ms()),
            self._metrics.render,
            lambda authorization: keys.verify(bootstrap.service(), authorization),
            problem,
        )
        function = Function(
            name=FUNCTION_NAME,
            folder=Path(FUNCTION_NAME),
            handler="",
            timeout_seconds=30,
            memory_mb=128,
            environment={},
        )
        return function, routes

    def _run_unless_in_trouble(self, run: Callable[[], None]) -> None:
        """Refuses at once during trouble: the call would otherwise wait for its end."""
        if self._trouble.reason is not None:
            raise Unavailable(self._trouble.reason)
        run()

    def _make_server(self, functions: Functions, ending: contextlib.ExitStack) -> Server:
        router = Router([*self._template.routes_of(API), *ROUTES])
        gateway = Gateway(
            *(router, functions, self._clock, problem),
            trouble=lambda: self._trouble.reason,
            damage=self._known_damage,
            urls=self._urls(),
            giving_way=[
                each.name for each in self._template.functions if each.folder.name in GIVING_WAY
            ],
            note_call=self._metrics.note_call,
            give_back=lambda receipts: give_back_unread(bootstrap.service(), receipts),
        )
        server = Server(gateway, self._host, self._port)
        chosen, self._port = self._port, server.port
        if self._dialect_port is None:
            self._next_port = self._port + 1 if chosen else 0
        # In this order: no new calls, then sleeping calls are woken, then the last calls end.
        ending.callback(server.stop)
        ending.callback(self._clock.stop)
        ending.callback(server.refuse)
        return server

    def _make_dialect_server(
        self, functions: Functions, ending: contextlib.ExitStack
    ) -> Server | None:
        if self._dialect_port == 0:
            return None
        others = next(each for each in self._template.routes_of(API) if not each.path)
        # A test that waits for a container asks this port.
        health = Route(function=others.function, method="GET", path="/health", api=DIALECT_API)
        routes = [*self._template.routes_of(DIALECT_API), health]
        gateway = Gateway(
            *(Router(routes), functions, self._clock, problem),
            trouble=lambda: self._trouble.reason,
            damage=self._known_damage,
            note_call=self._metrics.note_call,
            give_back=lambda receipts: give_back_unread(bootstrap.service(), receipts),
        )
        port = self._next_port if self._dialect_port is None else self._dialect_port
        try:
            server = Server(gateway, self._host, port)
        except AddressError as error:
            if self._dialect_port is not None:
                raise AddressError(str(error).replace("--port", "--dialect-port")) from error
            self._tell(
                f"other services' SDKs are not answered: port {port} is in use; take a"
                " --dialect-port"
            )
            return None
        ending.callback(server.stop)
        ending.callback(self._clock.stop)
        ending.callback(server.refuse)
        return server

    def _urls(self) -> dict[str, str]:
        """Returns the functions with their own URL, by the names of their folders."""
        folders = {each.name: each.folder.name for each in self._template.functions}
        return {folders[name]: name for name in self._template.urls}

    def _spawn(self, target: Callable[[], Any]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()


def _log_into(log: LogFile) -> Callable[[], None]:
    """Writes the logs of the stack's own parts there, too. Returns a call that ends it."""
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.root.addHandler(handler)
    return lambda: logging.root.removeHandler(handler)
