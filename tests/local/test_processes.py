"""Several processes at one service: each message is received by one, groups keep their order."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.stack import Stack

SENDERS, RECEIVERS = 2, 3
BATCHES = 40
GROUPS = 12
PATIENCE_SECONDS = 60

Came = tuple[float, str, str, str]
"""(time.monotonic() of the answer, which all processes share; id, group, body)."""


def send(url: str, headers: dict[str, str], queue: str, sender: int) -> list[str]:
    """Send numbered messages in batches; their ids."""
    sent: list[str] = []
    with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=30) as client:
        for batch in range(BATCHES):
            group = f"{sender}-{batch % GROUPS}"
            messages: list[dict[str, Any]] = [
                {"body": f"{batch:03d}-{place}"} for place in range(1 + batch % 4)
            ]
            if queue == "ordered":
                messages = [{**message, "group": group} for message in messages]
            answer = client.post(f"/queues/{queue}/messages", json={"messages": messages})
            sent += [each["id"] for each in answer.raise_for_status().json()["messages"]]
    return sent


def receive(url: str, headers: dict[str, str], queue: str, all_sent: Path) -> list[Came]:
    """Receive and delete until the file `all_sent` is there and the queue empty."""
    came: list[Came] = []
    ends = time.monotonic() + PATIENCE_SECONDS
    with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=30) as client:
        while time.monotonic() < ends:
            ending = all_sent.exists()
            asked = {"max": 4, "wait_seconds": 1}
            answer = client.post(f"/queues/{queue}/messages/receive", json=asked)
            at = time.monotonic()
            held = answer.raise_for_status().json()["messages"]
            came += [(at, each["id"], each.get("group", ""), each["body"]) for each in held]
            if held:
                receipts = {"receipts": [each["receipt"] for each in held]}
                deleted = client.post(f"/queues/{queue}/messages/delete", json=receipts)
                assert len(deleted.raise_for_status().json()["deleted"]) == len(held)
            elif ending:
                counts = client.get(f"/queues/{queue}").raise_for_status().json()["counts"]
                if counts["active"] == counts["inactive"] == 0:
                    break
    return came


@pytest.mark.parametrize("queue", [pytest.param("plain", marks=pytest.mark.long), "ordered"])
def test_each_message_is_handled_once_and_in_order(
    shared_stack: Stack, tmp_path: Path, queue: str
) -> None:
    client = shared_stack.client()
    attributes = {"ordered": queue == "ordered", "visibility_timeout_seconds": 300}
    client.put(f"/queues/{queue}", json=attributes).raise_for_status()
    at = (shared_stack.url, {"authorization": client.headers["authorization"]}, queue)
    all_sent = tmp_path / "all-sent"
    with ProcessPoolExecutor(
        SENDERS + RECEIVERS, mp_context=multiprocessing.get_context("spawn")
    ) as processes:
        senders = [processes.submit(send, *at, sender) for sender in range(SENDERS)]
        receivers = [processes.submit(receive, *at, all_sent) for _ in range(RECEIVERS)]
        sent = [id_ for sender in senders for id_ in sender.result()]
        all_sent.touch()
        came = sorted(each for receiver in receivers for each in receiver.result())
    assert Counter(id_ for _, id_, _, _ in came) == Counter(sent)
    if queue == "ordered":
        bodies = defaultdict(list)
        for _, _, group, body in came:
            bodies[group].append(body)
        assert len(bodies) == SENDERS * GROUPS
        assert all(held == sorted(held) for held in bodies.values())
