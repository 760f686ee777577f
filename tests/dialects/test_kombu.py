"""kombu and a real Celery worker on the running service, by another endpoint and key alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from kombu.connection import Connection
from kombu.entity import Exchange, Queue
from kombu.messaging import Consumer, Producer
from kombu.transport.SQS import Transport

HERE = Path(__file__).parent
START_SECONDS = 60


def broker(running: dict[str, Any]) -> str:
    key, place = running["signing_key"], urlsplit(running["dialect_url"])
    return f"sqs://{key['access_key_id']}:{quote(key['secret'], safe='')}@{place.netloc}"


OPTIONS = {"region": "eu-central-1", "is_secure": False, "wait_time_seconds": 1}


@pytest.fixture
def connection(running: dict[str, Any]) -> Iterator[Any]:
    """As kombu's own documentation makes one."""
    with Connection(broker(running), transport_options=OPTIONS) as made:
        yield made


@pytest.fixture
def queue(connection: Any) -> Iterator[Any]:
    made = connection.SimpleQueue(f"k-{uuid.uuid4().hex}")
    yield made
    made.close()


def test_put_messages_are_got_and_counted(queue: Any) -> None:
    for number in range(5):
        queue.put({"number": number})
    assert queue.qsize() == 5
    found = []
    for _ in range(5):
        message = queue.get(timeout=10)
        found.append(message.payload["number"])
        message.ack()
    assert sorted(found) == list(range(5))
    with pytest.raises(queue.Empty):
        queue.get(timeout=1)


def test_a_requeued_message_comes_again(queue: Any) -> None:
    queue.put("once more")
    first = queue.get(timeout=10)
    first.requeue()
    again = queue.get(timeout=10)
    assert again.payload == first.payload == "once more"
    again.ack()


def test_a_queue_is_cleared(queue: Any) -> None:
    for number in range(3):
        queue.put(number)
    queue.clear()
    assert queue.qsize() == 0
    with pytest.raises(queue.Empty):
        queue.get_nowait()


class Worker:
    """A program of Celery: a worker, and calls of its tasks."""

    def __init__(self, running: dict[str, Any], folder: Path, **more: str) -> None:
        self.done = folder / "done"
        self._environment = {
            **{name: held for name, held in os.environ.items() if "AWS" not in name},
            "BROKER": broker(running),
            "QUEUE": f"c-{uuid.uuid4().hex}",
            "DONE": str(self.done),
            **more,
        }
        self._told = (folder / "worker.txt").open("w")
        self._running: list[subprocess.Popen[str]] = []

    def start(self) -> subprocess.Popen[str]:
        """Start a worker of one process."""
        command = [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker"]
        self._running.append(
            subprocess.Popen(
                [*command, "--pool", "solo", "--loglevel", "INFO", "--without-gossip"],
                cwd=HERE,
                env=self._environment,
                stdout=self._told,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        return self._running[-1]

    def call(self, *tasks: str) -> None:
        """Send tasks, each as Python says it: `add.delay(1, 2)`."""
        code = "from celery_tasks import *\n" + "\n".join(tasks)
        run = subprocess.run(
            [sys.executable, "-c", code],
            cwd=HERE,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr

    def lines(self) -> list[str]:
        return self.done.read_text("utf-8").splitlines() if self.done.exists() else []

    def wait(self, holds: Callable[[list[str]], object]) -> list[str]:
        """Wait until what the tasks noted is so."""
        ends = time.monotonic() + START_SECONDS
        while not holds(self.lines()):
            told = Path(self._told.name).read_text()
            assert time.monotonic() < ends, f"{self.lines()} {told}"
            time.sleep(0.1)
        return self.lines()

    def end(self) -> None:
        for each in self._running:
            each.kill()
            each.wait()
        self._told.close()


@pytest.fixture
def worker(running: dict[str, Any], tmp_path: Path) -> Iterator[Worker]:
    made = Worker(running, tmp_path, VISIBILITY="3")
    yield made
    made.end()


@pytest.mark.long
def test_tasks_run_are_retried_and_survive_a_killed_worker(worker: Worker) -> None:
    first = worker.start()
    worker.call("add.delay(1, 2)", "add.delay(3, 4)", "stumble.delay('s')")
    lines = worker.wait(lambda lines: "s try 3" in lines and len(lines) == 5)
    assert sorted(line for line in lines if "=" in line) == ["1 + 2 = 3", "3 + 4 = 7"]
    assert [line for line in lines if "try" in line] == ["s try 1", "s try 2", "s try 3"]

    # It is acknowledged when it is done, so a worker that dies leaves it to another one.
    worker.call("linger.delay('l', 2)")
    worker.wait(lambda lines: any(line.startswith("l begun") for line in lines))
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert "l done" not in worker.lines()
    worker.start()
    lines = worker.wait(lambda lines: "l done" in lines)
    begun = [line for line in lines if line.startswith("l begun")]
    assert len(begun) == len(set(begun)) == 2


@pytest.fixture
def fanout(running: dict[str, Any]) -> Iterator[Any]:
    """A connection whose fanout exchanges are topics of SNS."""
    options = {**OPTIONS, "supports_fanout": True}
    with Connection(broker(running), transport_options=options) as made:
        yield made


def test_each_queue_of_a_fanout_gets_the_published_message(fanout: Any) -> None:
    name = uuid.uuid4().hex
    exchange = Exchange(f"news-{name}", type="fanout")
    queues = [Queue(f"{each}-{name}", exchange=exchange) for each in ("teas", "milks")]
    got: dict[str, list[Any]] = {queue.name: [] for queue in queues}

    def note(body: Any, message: Any) -> None:
        got[message.delivery_info["sqs_queue"].rpartition("/")[2]].append(body)
        message.ack()

    with Consumer(fanout.channel(), queues=queues, callbacks=[note], accept=["json"]):
        Producer(fanout.channel(), exchange=exchange).publish({"cups": 2})
        ends = time.monotonic() + 30
        while not all(got.values()) and time.monotonic() < ends:
            fanout.drain_events(timeout=30)
    assert list(got.values()) == [[{"cups": 2}], [{"cups": 2}]]


def test_celery_leaves_its_remote_control_out_on_sqs() -> None:
    """Its worker asks the transport for `fanout`, and kombu's of SQS names `direct` alone.

    So `celery inspect` reaches no worker, on AWS neither. Once this fails, try it.
    """
    assert "fanout" not in Transport.implements.exchange_type
