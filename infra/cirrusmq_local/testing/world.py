"""The whole service in memory: the template's functions over the embedded engine, in one thread."""

from __future__ import annotations

import gzip
import os
import random
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from cirrusmq.access import keys
from cirrusmq.base.limits import ANSWER_BYTES
from cirrusmq.model.answer_sample import AnswerSample
from cirrusmq.model.message import gzipped
from cirrusmq.runtime.core import Called, Tables
from cirrusmq.runtime.secret import Generations, written
from cirrusmq.storage.deployment_formats import note_formats
from cirrusmq.wiring import bootstrap
from cirrusmq_lambda.request_bodies import BINARY
from cirrusmq_local.cloud.aws import isolate_environment
from cirrusmq_local.cloud.buckets import bodies_bucket, open_bucket
from cirrusmq_local.cloud.events import (
    Request,
    answer_failure,
    make_event,
    make_url_event,
    read_answer,
)
from cirrusmq_local.cloud.functions import load_handler
from cirrusmq_local.cloud.guard import GuardedBucket
from cirrusmq_local.cloud.invocation import FunctionError, Handler, goes_on, invoke, running
from cirrusmq_local.cloud.pump import Pump
from cirrusmq_local.cloud.routing import Router
from cirrusmq_local.cloud.sealing import GuardedSealing, SealingKey
from cirrusmq_local.cloud.tables import table_specs
from cirrusmq_local.cloud.template import (
    ALL_DIALECTS,
    API,
    DIALECT_API,
    TEMPLATE,
    Function,
    Template,
    load,
)
from cirrusmq_local.cloud.unprocessed import UnprocessedQueue
from cirrusmq_local.engine import Engine
from cirrusmq_local.testing.clock import START_MS, ManualClock
from cirrusmq_local.testing.core import make_core
from cirrusmq_local.testing.own_processes import OwnProcesses
from cirrusmq_local.testing.subscriber import TAKEN, Subscriber


@dataclass(frozen=True)
class Reply:
    """An answer as a client sees it."""

    status: int
    headers: dict[str, str]
    text: str
    """Bytes that are no UTF-8 are lone surrogates in it."""

    @property
    def json(self) -> Any:
        """The body's JSON value."""
        return msgspec.json.decode(self.text)

    @property
    def code(self) -> str | None:
        """The error's code, or None if the call succeeded."""
        return self.json.get("code") if self.status >= 400 else None


@dataclass(frozen=True)
class Posting:
    """The outcome of a post: `error` is `status <n>`, a kind of error, or None for 204."""

    error: str | None
    retry_after_seconds: float | None = None
    sample: AnswerSample | None = None

    @property
    def status(self) -> int | None:
        """Status of the answer, or None if there was no answer."""
        said, _, status = (self.error or f"status {TAKEN}").partition(" ")
        return int(status) if said in ("status", "redirect") else None


class Invoked(tuple[str, dict[str, Any]]):
    """A waiting invocation: the function's role and its event."""

    chain: tuple[str, ...]
    """The functions that led to it."""

    def __new__(cls, invoked: tuple[str, dict[str, Any]], chain: tuple[str, ...]) -> Invoked:
        made = super().__new__(cls, invoked)
        made.chain = chain
        return made


class World:
    """The service, its clock and its store."""

    def __init__(
        self,
        *,
        seed: int = 0,
        path: Path | None = None,
        shared_caches: bool = True,
        direct_urls: bool = False,
        in_process: bool = False,
        bodies_in_s3_from: int | None = None,
        by_sdk: bool = False,
        like: World | None = None,
    ) -> None:
        """`direct_urls`: calls go to a function's own URL if it has one.

        `in_process`: clients make the calls of plain queues themselves, on the tables.
        `bodies_in_s3_from`: size in KiB from which the messages of a send are in the bucket, 0 for
        never; None takes the template's value.
        `by_sdk`: botocore's client makes the calls of DynamoDB, as in an account. This doubles the
        time of a call.
        `like`: a world with whose items and time this one begins; many tests can share it. Raises
        ValueError if it has work left to run, or a message in the bucket.
        """
        isolate_environment()
        os.environ.setdefault("POWERTOOLS_METRICS_DISABLED", "true")
        self.clock: ManualClock = ManualClock(START_MS if like is None else like.clock.now_ms())
        template, self._handlers, self._routers = _deployed(direct_urls)
        self._urls = frozenset(template.urls)
        self.engine: Engine = Engine(
            path,
            table_specs(template),
            now_ms=self.clock.now_ms,
            like=None if like is None else like.engine,
        )
        declaration = bodies_bucket(template)
        self.bucket = open_bucket(declaration, None, self.clock.now_ms)
        """The messages of large sends."""
        self.random = random.Random(seed)
        self.invoked: deque[tuple[str, dict[str, Any]]] = deque()
        self.dropped: list[tuple[str, dict[str, Any]]] = []
        """Invocations that Lambda took for an endless loop."""
        self.unprocessed = UnprocessedQueue(self.clock.now_ms)
        """Events that Lambda gave up."""
        self.reports: dict[str, bytes] = {}
        """The data pipeline's output: path -> content."""
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        self.endpoint: Callable[[str], str | None] = lambda url: None
        """The answer of an endpoint: the kind of error, or None if it takes the message."""
        self.handle: Callable[[dict[str, Any]], Any] = lambda event: None
        """The function that a queue may invoke: returns its answer to an event."""
        self.batches: list[list[dict[str, Any]]] = []
        """The records of each of its calls."""
        self.executions: list[tuple[str, dict[str, Any]]] = []
        self.secret = written(Generations(key=f"{seed:064x}"))
        """The document that Secrets Manager keeps for a deployment."""
        self._sealing = GuardedSealing(SealingKey(seed.to_bytes(32, "big")))
        if like is not None:
            if like.invoked or like.executions or like.bucket.keys():
                raise ValueError("the other world has something left to run, or in its bucket")
            self.random.setstate(like.random.getstate())
            self.secret, self._sealing = like.secret, like._sealing
        environment = template.environment()
        os.environ["DIALECTS"] = environment["DIALECTS"]
        self.denied: list[str] = []
        """Operations on tables that the policies of the calling function do not allow."""
        named = {name: environment[f"{name.upper()}_TABLE"] for name in Tables.__struct_fields__}
        self.tables = Tables(**named)
        self.core = make_core(
            self.engine,
            self.tables,
            self.clock,
            self.random,
            shared_caches=shared_caches,
            invoke=self._invoke_later,
            start_execution=lambda name, given: self.executions.append((name, given)),
            post=lambda url, headers, body: self.post(url, headers, body),
            call=self._call_function,
            read_report=self.reports.get,
            unprocessed=self.unprocessed,
            read_secret=lambda: self.secret,
            bucket=GuardedBucket(self.bucket, declaration),
            bucket_name=declaration.name,
            sealing=self._sealing,
            bodies_in_s3_from=int(
                environment["BODIES_IN_S3_FROM"] if bodies_in_s3_from is None else bodies_in_s3_from
            ),
            by_sdk=by_sdk,
            denied=self.denied,
        )
        self.own: OwnProcesses | None = None
        """The processes of clients that call the tables themselves."""
        if in_process:
            self.own = OwnProcesses(self.core, self.engine)
            note_formats(self.core)
        self._pumps = [
            Pump(source, self.engine, self._run_function, self.unprocessed.give_up, self.clock)
            for source in template.streams
        ]
        self._names = {function.folder.name: name for name, (function, _) in self._handlers.items()}

    def client(self, account: str, *, admin: bool = False) -> Client:
        """Returns a client with a new key of the account, which may use all of its resources."""
        rights = keys.KeyRights(admin=admin, manages_keys=True)
        key, secret = keys.create_key(self.core, account, rights)
        return Client(self, f"Bearer {key.id}:{secret}")

    def run(self, role: str, event: Any = None) -> Any:
        """Runs a function by its folder's name. Returns its answer."""
        return self._run_function(self._names[role], event or {})

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Posting:
        """Notes a post. Returns its outcome by `endpoint`."""
        self.posts.append((url, dict(headers), body))
        return Posting(self.endpoint(url))

    def subscriber(self) -> Subscriber:
        """Returns a new subscriber, on this clock, for all later posts to any URL."""
        made = Subscriber(now_ms=self.clock.now_ms)

        def answer(url: str) -> str | None:
            _, headers, body = self.posts[-1]
            status = made.take(urlsplit(url).path.strip("/"), headers, body)
            if status is None:
                return "timeout"
            return None if 200 <= status < 300 else f"status {status}"

        self.endpoint = answer
        return made

    def settle(self) -> None:
        """Runs all waiting work: invocations, and the readers of the stream."""
        busy = True
        while busy:
            busy = False
            while self.invoked:
                invoked = self.invoked.popleft()
                role, event = invoked
                copied = msgspec.json.decode(msgspec.json.encode(event))
                chain = invoked.chain if isinstance(invoked, Invoked) else ()
                self._run_function(self._names[role], copied, chain)
                busy = True
            positions = [pump.saved for pump in self._pumps]
            for pump in self._pumps:
                pump.drain()
            busy = busy or positions != [pump.saved for pump in self._pumps]

    def run_stream(self, role: str) -> None:
        """Lets one reader of the stream read to its end."""
        for pump in self._pumps:
            if pump.source.function == self._names[role]:
                pump.drain()

    def items(self, table: str = "messages") -> list[dict[str, Any]]:
        """Returns every item of a table, in wire shapes."""
        name = getattr(self.tables, table)
        answer = self.engine.execute("Scan", {"TableName": name})
        found = list(answer["Items"])
        while "LastEvaluatedKey" in answer:
            request = {"TableName": name, "ExclusiveStartKey": answer["LastEvaluatedKey"]}
            answer = self.engine.execute("Scan", request)
            found += answer["Items"]
        return found

    def units(self, call: Callable[[], object]) -> tuple[float, float]:
        """Returns a call's (write units, read units), over all tables."""
        before = self.engine.capacity()
        call()
        after = self.engine.capacity()
        written, read = (after[kind] - before[kind] for kind in ("write_units", "read_units"))
        return float(written), float(read)

    def write_units(self, call: Callable[[], object]) -> float:
        """Returns the write units that a call consumes."""
        return self.units(call)[0]

    def call(
        self,
        method: str,
        path: str,
        body: bytes,
        headers: dict[str, str],
        query: str = "",
        *,
        api: str = API,
    ) -> Reply:
        """Makes one HTTP call, from the event to the function's answer.

        `api`: `DIALECT_API` is the API for the SDKs of other services.
        """
        if self.own is not None and api == API:
            answered = self.own.answer(method, path, body, headers, query)
            if answered is not None:
                status, text = answered
                return Reply(status, {"Content-Type": "application/json"}, text)
        name, event, direct = self.event(method, path, body, headers, query, api=api)
        try:
            read = read_answer(self._run_function(name, event))
        except FunctionError as error:
            read = answer_failure(error, direct=direct)
        told, content = dict(read.headers), read.body
        if told.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        return Reply(read.status, told, content.decode("utf-8", "surrogateescape"))

    def event(
        self,
        method: str,
        path: str,
        body: bytes,
        headers: dict[str, str],
        query: str = "",
        *,
        api: str = API,
    ) -> tuple[str, dict[str, Any], bool]:
        """Returns a call's function, its event, and True if it is called at its own URL."""
        match = self._routers[api].match(method, path)
        assert match is not None
        request = Request(
            method=method,
            raw_path=path,
            query=query,
            headers=[(name.lower(), value) for name, value in headers.items()],
            body=body,
            source="127.0.0.1",
            http_version="1.1",
        )
        request_id, now_ms, name = str(uuid.UUID(int=0)), self.clock.now_ms(), match.route.function
        if name in self._urls:
            return name, make_url_event(request, request_id, now_ms), True
        return name, make_event(request, match, request_id, now_ms), False

    def _run_function(self, name: str, event: Any, chain: tuple[str, ...] = ()) -> Any:
        function, handler = self._handlers[name]
        with bootstrap.serving(self.core):
            return invoke(function, handler, event, lambda: self.clock.now_ms() / 1_000, chain)

    def _invoke_later(self, role: str, event: dict[str, Any]) -> None:
        invocation = running.get()
        chain = invocation.chain if invocation else ()
        function, _ = self._handlers[self._names[role]]
        if goes_on(function, chain):
            self.invoked.append(Invoked((role, event), chain))
        else:
            self.dropped.append((role, event))

    def _call_function(self, arn: str, event: bytes, seconds: float) -> Called:
        given = msgspec.json.decode(event)
        self.batches.append(given["Records"])
        begun_ms = self.clock.now_ms()
        try:
            answer = self.handle(given)
        except Exception as error:
            return Called(error=repr(error))
        if self.clock.now_ms() > begun_ms + seconds * 1000:
            return Called(error="no answer in time", unknown=True)
        return Called(answer=answer)


class Client:
    """Calls with one access key."""

    def __init__(self, world: World, authorization: str) -> None:
        self.world = world
        self.authorization = authorization
        self.gzips = False
        """True if it gzips its requests and accepts gzipped answers."""

    def call(self, method: str, path: str, body: object = None, query: str = "") -> Reply:
        """Makes a call with a JSON body, or without one."""
        raw = b"" if body is None else msgspec.json.encode(body)
        return self.raw(method, path, raw, query=query)

    def raw(
        self,
        method: str,
        path: str,
        body: bytes,
        *,
        content_type: str = "application/json",
        query: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Makes a call with a body of any bytes. `headers`: further ones, in lower case."""
        told = {"authorization": self.authorization, "content-type": content_type}
        told |= headers or {}
        if self.gzips:
            told["accept-encoding"] = "gzip"
        if self.gzips and body:
            body = gzipped(body, ANSWER_BYTES)
            told |= {"content-type": BINARY, "content-encoding": "gzip"}
        return self.world.call(method, path, body, told, query)

    def get(self, path: str, query: str = "") -> Reply:
        """Makes a GET call."""
        return self.call("GET", path, query=query)

    def put(self, path: str, body: object = None, **query: str) -> Reply:
        """Makes a PUT call."""
        return self.call("PUT", path, body, urlencode(query))

    def patch(self, path: str, body: object) -> Reply:
        """Makes a PATCH call."""
        return self.call("PATCH", path, body)

    def post(self, path: str, body: object = None) -> Reply:
        """Makes a POST call."""
        return self.call("POST", path, body)

    def delete(self, path: str) -> Reply:
        """Makes a DELETE call."""
        return self.call("DELETE", path)

    def send(self, queue: str, *bodies: str, **fields: Any) -> list[dict[str, Any]]:
        """Sends messages that differ only in their bodies. Returns their entries in the answer."""
        messages = [{"body": body, **fields} for body in bodies]
        reply = self.post(f"/queues/{queue}/messages", {"messages": messages})
        assert reply.status == 201, reply.text
        return list(reply.json["messages"])

    def receive(self, queue: str, limit: int = 16, **fields: Any) -> list[dict[str, Any]]:
        """Receives without a wait. Returns the messages."""
        request = {"max": limit, "wait_seconds": 0, **fields}
        reply = self.post(f"/queues/{queue}/messages/receive", request)
        assert reply.status == 200, reply.text
        return list(reply.json["messages"])


@cache
def _deployed(
    direct_urls: bool,
) -> tuple[Template, dict[str, tuple[Function, Handler]], dict[str, Router]]:
    """Returns the template, its functions by name, and the routes of both APIs."""
    template = load(TEMPLATE, {"DirectUrls": str(direct_urls).lower(), "Dialects": ALL_DIALECTS})
    handlers = {each.name: (each, load_handler(each)) for each in template.functions}
    routers = {api: Router(template.routes_of(api)) for api in (API, DIALECT_API)}
    return template, handlers, routers
