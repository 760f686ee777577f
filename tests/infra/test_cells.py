"""The cells of faults: their judge finds what is planted, and one is played on the service."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from bench.cells import all_peers
from bench.cells.history import (
    Event,
    delays,
    judge,
    open_calls,
    rate,
    read,
    retry_wait,
)

KEYS = ("m1", "m2", "m3")


def history(*left_out: tuple[str, str]) -> list[Event]:
    """Each message is asked, answered, started and completed, but for what is left out."""
    kinds = ("asked", "sent", "started", "done")
    made = [
        (kind, key, "producer" if kind in kinds[:2] else "worker") for key in KEYS for kind in kinds
    ]
    return [
        Event(float(second), kind, key, process)
        for second, (kind, key, process) in enumerate(made)
        if (kind, key) not in left_out
    ]


def again(kind: str, key: str, events: Iterable[Event]) -> list[Event]:
    return [*events, Event(99.0, kind, key, "worker2")]


@pytest.mark.parametrize(
    ("events", "sent", "found"),
    [
        (history(), 3, {}),
        (history(("done", "m2")), 3, {"lost": {"m2"}}),
        (history(("started", "m3"), ("done", "m3")), 3, {"lost": {"m3"}}),
        (history(("sent", "m2"), ("started", "m2"), ("done", "m2")), 2, {}),
        (again("done", "m1", history()), 3, {"doubled": {"m1"}}),
        (again("done", "m9", history()), 3, {"unknown": {"m9"}}),
    ],
    ids=[
        *("a history without faults", "nobody completes one", "nobody starts one"),
        *("a send without an answer", "two workers complete one", "nobody sent one"),
    ],
)
def test_faults_of_a_history_are_found(
    events: list[Event], sent: int, found: dict[str, set[str]]
) -> None:
    verdict = judge(events)

    assert verdict.sent == sent
    for name in ("lost", "doubled", "unknown"):
        assert getattr(verdict, name) == found.get(name, set())


def test_the_last_is_done_when_each_was_completed_once() -> None:
    assert judge(history()).last_done == judge(again("done", "m1", history())).last_done == 11.0


def test_a_message_failing_first_is_not_doubled() -> None:
    events = [*history(), Event(2.5, "failed", "m1", "worker"), Event(2.7, "started", "m1", "w")]

    assert judge(events).doubled == frozenset()
    assert retry_wait(events) == pytest.approx(0.2)


def test_a_producer_waiting_for_an_answer_has_an_open_call() -> None:
    waiting = [*history(), Event(50.0, "asked", "m4", "producer")]

    assert open_calls(history()) == {}
    assert open_calls(waiting) == {"producer": 50.0}
    assert open_calls([*waiting, Event(51.0, "refused", "m4", "producer")]) == {}


def test_delays_and_rates_are_of_the_named_messages() -> None:
    assert delays(history(("started", "m2")), ["m1", "m2"]) == [2.0]
    assert rate(history(), {"m1", "m2"}) == pytest.approx(2 / 5)


def test_the_lines_of_a_killed_process_are_whole(root: Path, tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from bench.cells.history import Notes
notes = Notes(Path({str(tmp_path / "worker.notes")!r}))
while True:
    notes.note("done", "m1")
"""
    where = {**os.environ, "PYTHONPATH": str(root / "infra")}
    with subprocess.Popen([sys.executable, "-c", program], env=where) as noting:
        while not read(tmp_path):
            time.sleep(0.01)
        noting.kill()

    assert {(event.kind, event.key, event.process) for event in read(tmp_path)} == {
        ("done", "m1", "worker")
    }


def test_the_page_has_a_row_of_each_queue_in_each_table(root: Path) -> None:
    played, _, _ = (root / "infra/manual/peers.md").read_text().partition("## Not measured")
    tables = re.findall(r"(?m)^\| queue \|.*\n(?:\|.*\n)+", played)

    names = [re.findall(r"(?m)^\| ([^|-]+) \|", table)[1:] for table in tables]

    assert names == [[peer.name for peer in all_peers()]] * 9  # settings, and eight cells


@pytest.mark.long
def test_the_command_plays_a_cell_on_the_service(root: Path) -> None:
    options = ["--queue", "ours", "--cell", "store killed", "--messages", "30"]
    done = subprocess.run(
        [sys.executable, "-m", "infra.bench", "cells", *options],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
        timeout=300,
    )

    (row,) = re.findall(r"^\| ours \| (\d+) \| (\d+) \| \d+ \| (\d+) \|", done.stdout, re.M)
    assert row == ("30", "0", "0"), done.stdout
