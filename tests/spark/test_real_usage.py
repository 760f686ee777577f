"""The bill of known traffic, metered by a running stack, has exactly its counts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.stack import COMMAND, Start, environment


@pytest.fixture
def data(start: Start) -> Path:
    """The data of a running `cirrusmq up`."""
    stack = start()
    assert stack.ready
    return stack.folder


def run(data: Path, *arguments: str) -> str:
    ended = subprocess.run(
        [COMMAND, *arguments, "--data", data],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def billed(data: Path) -> dict[tuple[str, str], int]:
    """Counts by resource and kind, of a bill that is made now."""
    report: dict[str, Any] = json.loads(run(data, "report", "billing", "--json"))
    return {
        (line["resource"], line["kind"]): line["count"]
        for invoice in report["invoices"]
        for line in invoice["lines"]
        if line["kind"] not in ("kept", "rewindable")
    }


def test_a_bill_of_known_traffic_is_exact(data: Path) -> None:
    bodies: list[str] = []
    run(data, "queue", "create", "orders")
    run(data, "queue", "create", "copies")
    run(data, "topic", "create", "news")
    run(data, "subscribe", "news", "to-copies", "--queue", "copies")
    run(data, "send", "orders", *(f"message {number}" for number in range(7)))
    run(data, "send", "orders", "one", "two")
    # A call answers the messages it finds first; the two sends may be in different partitions.
    while (
        len(received := run(data, "receive", "orders", "--max", "16", "--delete").split("\n")) > 1
    ):
        bodies += [line for line in received if line]
    assert len(bodies) == 9
    run(data, "publish", "news", "first")
    run(data, "publish", "news", "second")
    expected = {
        ("queue:orders", "sent"): 9,
        ("queue:orders", "received"): 9,
        ("queue:orders", "deleted"): 9,
        ("topic:news", "published"): 2,
    }
    bill = billed(data)
    assert {place: bill.get(place) for place in expected} == expected, bill
