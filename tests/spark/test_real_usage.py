"""The bill of known traffic, metered by a running stack, has exactly its counts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_command
from tests.spark.conftest import PLAIN
from tests.stack import COMMAND, Start, environment

Run = Callable[..., str]
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
"""One short job: compiling it well would take longer than it does."""


@pytest.fixture
def data(start: Start) -> Path:
    """The data of a running `cirrusmq up`."""
    stack = start()
    assert stack.ready
    return stack.folder


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Run:
    """The command line on these data; what it prints."""

    def run(*arguments: str) -> str:
        chosen = [*arguments, "--data", str(data)]
        ended = run_command(chosen, env=environment(), folder=tmp_path)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run


@pytest.fixture
def settings(tmp_path: Path) -> str:
    """A folder with settings of Spark, for a query of a few records."""
    path = tmp_path / "spark-defaults.conf"
    path.write_text("".join(f"{name} {value}\n" for name, value in PLAIN.items()))
    return str(tmp_path)


def billed(data: Path, settings: str) -> dict[tuple[str, str], int]:
    """Counts by resource and kind, of a bill that is made now."""
    ended = subprocess.run(
        [COMMAND, "report", "billing", "--json", "--data", data],
        env=environment() | {"SPARK_CONF_DIR": settings, "JAVA_TOOL_OPTIONS": QUICK_JAVA},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    report: dict[str, Any] = json.loads(ended.stdout)
    return {
        (line["resource"], line["kind"]): line["count"]
        for invoice in report["invoices"]
        for line in invoice["lines"]
        if line["kind"] not in ("kept", "rewindable")
    }


@pytest.mark.long
def test_a_bill_of_known_traffic_is_exact(data: Path, run: Run, settings: str) -> None:
    bodies: list[str] = []
    run("queue", "create", "orders")
    run("queue", "create", "copies")
    run("topic", "create", "news")
    run("subscribe", "news", "to-copies", "--queue", "copies")
    run("send", "orders", *(f"message {number}" for number in range(7)))
    run("send", "orders", "one", "two")
    # A call answers the messages it finds first; the two sends may be in different partitions.
    while len(received := run("receive", "orders", "--max", "16", "--delete").split("\n")) > 1:
        bodies += [line for line in received if line]
    assert len(bodies) == 9
    run("publish", "news", "first")
    run("publish", "news", "second")
    expected = {
        ("queue:orders", "sent"): 9,
        ("queue:orders", "received"): 9,
        ("queue:orders", "deleted"): 9,
        ("topic:news", "published"): 2,
    }
    bill = billed(data, settings)
    assert {place: bill.get(place) for place in expected} == expected, bill
