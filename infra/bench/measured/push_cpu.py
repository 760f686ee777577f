"""CPU time of a push for several subscriptions, and its duration on the share of a CPU.

The deployed handler runs in this process and in one thread; the embedded engine answers before a
request is signed, and its CPU time is subtracted. Added are, each measured separately, the rest of
a call of the store, which is signing and an exchange on a kept connection, and one such exchange
for each post; TLS is left out. Lambda gives a whole CPU at 1,769 MB, and a proportional part below.
An exchange waits, and on a busy machine waits cost CPU time: compare calm runs.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from cirrusmq.webhooks.addresses import AddressPolicy
from cirrusmq.webhooks.client import Poster
from cirrusmq.wiring.adapters import awaited_config
from cirrusmq_local.engine.attachment import HttpAnswer
from cirrusmq_local.testing.world import World

from ..counted import bodies
from ..counted.lives import subscribe
from ..drawing.tables import middle, show
from .call_cpu import WHOLE_CPU_MB

RUNS = 20
CALLS = 200
MEMORY_MB, FAN_OUT_MB = 256, 512
SIZES = ((1, 1), (1, 16), (20, 1), (4, 16))
"""Subscriptions, and messages of each, in one invocation."""
_HEADS = (
    "subscriptions",
    "messages of each",
    "store calls",
    "handler, ms",
    "with what is sent, ms",
)
_SERVER = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *_):
        pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@dataclass(frozen=True)
class Handled:
    """A warm invocation, without the engine's CPU."""

    cpu_ms: float
    store_calls: float
    posts: int
    fanned_ms: float
    """CPU of the fan_out before it, which puts a parcel for each subscription."""


def run() -> None:
    """Prints the table."""
    with _server() as port:
        exchange_ms = kept_post_ms(port)
    call_ms = signed_call_ms() + exchange_ms
    rows = []
    for subscriptions, messages in SIZES:
        handled = handler(subscriptions, messages)
        cpu_ms = handled.cpu_ms + handled.store_calls * call_ms + handled.posts * exchange_ms
        fanned_ms = handled.fanned_ms + subscriptions * call_ms
        times = cpu_ms * WHOLE_CPU_MB / MEMORY_MB, fanned_ms * WHOLE_CPU_MB / FAN_OUT_MB
        rows.append((subscriptions, messages, handled.store_calls, handled.cpu_ms, cpu_ms, *times))
    show(
        f"CPU of one invocation of push, messages of 1 KB (medians of {RUNS})",
        [*_HEADS, f"at {MEMORY_MB} MB, ms", f"fan_out at {FAN_OUT_MB} MB, ms"],
        rows,
    )
    print(f"\nTo sign and send a store call {call_ms:.2f} ms, to post {exchange_ms:.2f} ms.")
    print("The round trips come on top, once: subscriptions wait side by side.")


def handler(subscriptions: int, messages: int) -> Handled:
    """Measures the deployed handler, on events that fan_out makes."""
    world = World(by_sdk=True)
    client = world.client("alice")
    client.put("/topics/news")
    for number in range(subscriptions):
        subscribe(client, "http", number)
    engine, execute, inside, calls = world.engine, world.engine.execute, 0.0, 0

    def timed(*arguments: Any, **named: Any) -> Any:
        nonlocal inside, calls
        calls += 1
        began = time.process_time()
        try:
            return execute(*arguments, **named)
        finally:
            inside += time.process_time() - began

    engine.execute = timed  # type: ignore[method-assign]
    cpu, called, fanned = [], [], []
    for number in range(3 + RUNS):  # the first runs import modules
        sent = [bodies.text(1_024) for _ in range(messages)]
        client.post("/topics/news/messages", {"messages": sent})
        inside, began = 0.0, time.process_time()
        world.run_stream("fan_out")
        fanned_ms = 1_000 * (time.process_time() - began - inside)
        (invoked,) = world.invoked
        world.invoked.clear()
        inside, calls = 0.0, 0
        began = time.process_time()
        world.run(*invoked)
        if number >= 3:
            cpu.append(1_000 * (time.process_time() - began - inside))
            called.append(calls)
            fanned.append(fanned_ms)
        while world.invoked:  # at first all URLs are new, and passed on
            world.run(*world.invoked.popleft())
    return Handled(
        cpu_ms=middle(cpu),
        store_calls=middle(called),
        posts=subscriptions * messages,
        fanned_ms=middle(fanned),
    )


def signed_call_ms() -> float:
    """Returns CPU for signing a call of DynamoDB and reading its answer, by our configuration."""
    session = botocore.session.Session()
    session.set_credentials("nobody", "nothing")
    client = session.create_client("dynamodb", region_name="us-east-1", config=awaited_config())
    whole, without = "before-send.dynamodb", "before-call.dynamodb"
    took = []
    for event, answer in ((whole, _sent), (without, _not_signed)):
        client.meta.events.register(event, answer)
        took.append(_cpu_ms(lambda: _update(client)))
        client.meta.events.unregister(event, answer)
    return took[0] - took[1]


def _sent(**_: Any) -> AWSResponse:
    headers = {"content-type": "application/x-amz-json-1.0", "content-length": "2"}
    return AWSResponse("https://dynamodb", 200, HTTPHeaders.from_dict(headers), _Raw(b"{}"))


def _not_signed(**_: Any) -> tuple[HttpAnswer, dict[str, Any]]:
    return HttpAnswer(200), {}


class _Raw(io.BytesIO):
    """The body of an answer, as urllib3 has it."""

    def stream(self) -> Iterator[bytes]:
        """Yields the whole body at once."""
        yield self.read()


def kept_post_ms(port: int) -> float:
    """Returns CPU of a post of 1 KB on a kept connection, without TLS."""
    poster = Poster(AddressPolicy([ip_network("127.0.0.0/8")]))
    headers = {"webhook-id": "Msg-0", "content-type": "text/plain"}
    url, body = f"http://127.0.0.1:{port}/", b"x" * 1_024

    def post() -> None:
        outcome = poster.post(url, headers, body)
        assert outcome.error is None, outcome

    try:
        return _cpu_ms(post)
    finally:
        poster.close()


def _update(client: Any) -> None:
    """Writes as for the lease of a poster."""
    client.update_item(
        TableName="messages",
        Key={"pk": {"S": "S#17"}, "sk": {"S": "0123456789ab"}},
        UpdateExpression="SET held_until = :held_until, holder = :holder REMOVE again",
        ConditionExpression="attribute_exists(pk) AND attribute_not_exists(holder)",
        ExpressionAttributeValues={":held_until": {"N": "1"}, ":holder": {"S": "push/x"}},
        ReturnValues="ALL_OLD",
    )


def _cpu_ms(call: Callable[[], object]) -> float:
    for _ in range(CALLS // 4):
        call()
    took = []
    for _ in range(CALLS):
        began = time.process_time()
        call()
        took.append(1_000 * (time.process_time() - began))
    return middle(took)


@contextlib.contextmanager
def _server() -> Iterator[int]:
    """Starts a server in a separate process that answers every POST with `{}`. Yields its port."""
    with subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()
