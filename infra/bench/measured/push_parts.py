"""The way from a publish to a URL, by its parts, in the layouts of one machine and of the cloud.

    publish call ──> stream ──> fan_out ──> push ──> post

On one machine the stream shows a record at once, and a store call takes a few hundred µs. In an
account both wait for the network, so the store calls of each part are shown, too.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import httpx

from ..drawing.tables import middle, show
from ..rivals.servers import free_port, wait_for_answer
from .subscriber import TAKEN, subscriber

LAYOUTS = ("shared", "cloud")
MESSAGES = 200
PAUSE_SECONDS = 0.02
"""Between two messages, so that no push is under way when the next one comes."""
_WARM = 20
_FUNCTIONS = ("-publish", "-fan_out", "-push")
_PROGRAM = "infra.bench.measured.noted_stack"


@dataclass(frozen=True)
class Invocation:
    """A run of a function: times in seconds, store calls in their order."""

    name: str
    begin: float
    end: float
    calls: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Message:
    """A published message: when the call began, and when the URL got it."""

    called: float
    posted: float


PARTS = (
    "call to the publish's last write",
    "to the begin of fan_out (stream)",
    "fan_out, to the begin of push",
    "push, to the post",
)


def run() -> None:
    """Prints a table for each layout."""
    for layout in LAYOUTS:
        messages, invocations = measure(layout)
        split = [each for each in (parts(one, invocations) for one in messages) if each]
        rows: list[tuple[object, ...]] = []
        for number, name in enumerate(PARTS):
            took = [1_000 * each[number][0] for each in split]
            rows.append((name, *_summary(took), mean(each[number][1] for each in split)))
        whole = [1_000 * (each.posted - each.called) for each in messages]
        calls = mean(sum(part[1] for part in each) for each in split)
        rows.append(("in all", *_summary(whole), calls))
        show(
            f"From a publish to a URL, layout {layout}: {len(split)} messages one by one",
            ["part", "median, ms", "99 %, ms", "store calls"],
            rows,
        )


def _summary(found: list[float]) -> tuple[float, float]:
    return middle(found), sorted(found)[int(0.99 * len(found))]


def parts(message: Message, invocations: list[Invocation]) -> list[tuple[float, int]] | None:
    """Returns (seconds, store calls) of each part; None if another message shared a function."""
    during = [
        each for each in invocations if message.called < each.begin < message.posted and each.calls
    ]
    found = [[each for each in during if each.name.endswith(name)] for name in _FUNCTIONS]
    if any(len(each) != 1 for each in found):
        return None
    (publish,), (fan_out,), (push,) = found
    written = max(at for _, at in publish.calls)
    before_push = sum(at < push.begin for _, at in fan_out.calls)
    before_post = sum(at < message.posted for _, at in push.calls)
    return [
        (written - message.called, len(publish.calls)),
        (fan_out.begin - written, 0),
        (push.begin - fan_out.begin, before_push),
        (message.posted - push.begin, before_post),
    ]


def measure(layout: str) -> tuple[list[Message], list[Invocation]]:
    """Returns the messages, and all invocations of a stack in that layout."""
    with (
        tempfile.TemporaryDirectory() as data,
        subscriber() as at,
        _running(data, layout) as (process, http),
    ):
        http.put("/topics/bench", json={}).raise_for_status()
        body = {"protocol": "http", "endpoint": at.url(TAKEN)}
        http.put("/topics/bench/subscriptions/web", json=body).raise_for_status()
        messages = []
        for _ in range(_WARM + MESSAGES):
            time.sleep(PAUSE_SECONDS)
            called = time.perf_counter()
            request = {"messages": [{"body": "x"}]}
            answer = http.post("/topics/bench/messages", json=request).raise_for_status()
            (delivery,) = at.wait_for([answer.json()["messages"][0]["id"]])
            messages.append(Message(called, delivery.at_ms / 1_000))
        told, _ = process.communicate()
    invocations = [
        Invocation(name, begin, end, tuple((each[0], each[1]) for each in calls))
        for name, begin, end, calls in json.loads(told)
    ]
    return messages[_WARM:], invocations


@contextlib.contextmanager
def _running(data: str, layout: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-m", _PROGRAM, data, str(port), layout],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            wait_for_answer(f"http://127.0.0.1:{port}/health")
            connection = json.loads(Path(data, "connection.json").read_text())
            key = f"{connection['access_key_id']}:{connection['secret']}"
            headers = {"Authorization": f"Bearer {key}"}
            with httpx.Client(base_url=connection["url"], headers=headers) as http:
                yield process, http
        finally:
            process.kill()
