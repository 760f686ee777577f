"""`cirrusmq verify` on a running stack: its result, and what it leaves behind."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.local.scripted_service import run_command
from tests.stack import COMMAND, Start, environment

from cirrusmq_local.stack.data import owner
from cirrusmq_local.verifying.journal import read_steps

# Real time counts here: with other tests beside it, a loaded machine would fail it.
pytestmark = pytest.mark.alone
PATIENCE_SECONDS = 180
"""Scenes last as long as they are told, and what they leave is received after them."""


def _verify(tmp_path: Path, *arguments: str, minutes: str = "0.4") -> tuple[int, dict[str, Any]]:
    out = tmp_path / "verified"
    ran = run_command(
        *("verify", "--minutes", minutes, "--yes", "--seed", "1", "--out", str(out)),
        *arguments,
        folder=tmp_path,
        seconds=PATIENCE_SECONDS,
    )
    assert (out / "result.json").exists(), ran.stderr
    return ran.returncode, json.loads((out / "result.json").read_text())


def test_a_sound_service_keeps_its_promises(start: Start, tmp_path: Path) -> None:
    stack = start()
    scenes = ("singles", "ordered", "dead letters", "topics")
    only = [word for name in scenes for word in ("--only", name)]
    key = ("--key", str(tmp_path / "key.pem"))

    code, result = _verify(tmp_path, "--data", str(stack.folder), *only, *key)

    assert (code, result["violations"], result["errors"]) == (0, [], [])
    verdicts = {each["id"]: each["verdict"] for each in result["promises"]}
    assert {verdicts[each] for each in ("never-lost", "one-holder", "ordered", "log")} == {"kept"}
    assert verdicts["restores"] == "not tried"
    assert verdicts["breakers"] == "kept"
    assert result["messages"]["sent"] > 20
    assert result["calls"]["send"]["milliseconds"]["p99"] > 0
    assert result["publish_to_url_milliseconds"]["p50"] > 0
    assert 0 < result["measured"]["write_units"] < result["plan"]["write_units"]
    with stack.client() as client:
        assert client.get("/queues").json()["queues"] == []
        assert client.get("/topics").json()["topics"] == []
    _checked(tmp_path)


def _checked(tmp_path: Path) -> None:
    """The signature holds, and neither the result nor the history can be changed."""
    path = tmp_path / "verified/result.json"
    assert run_command("verify", "--check", str(path), folder=tmp_path).returncode == 0
    history = tmp_path / "verified/history.jsonl"
    history.write_bytes(history.read_bytes() + b"\n")
    changed = run_command("verify", "--check", str(path), folder=tmp_path)
    assert changed.returncode == 1
    assert "is not the history" in changed.stderr
    path.write_text(path.read_text().replace('"lost": 0', '"lost": 1'))
    changed = run_command("verify", "--check", str(path), folder=tmp_path)
    assert "not of this content" in changed.stderr


@pytest.mark.long
def test_faults_of_the_machine_break_no_promise(tmp_path: Path) -> None:
    only = ("--only", "singles", "--only", "batches")
    code, result = _verify(tmp_path, "--start", "--faults", *only)

    assert (code, result["violations"], result["errors"]) == (0, [], [])
    assert result["faults"]["killed"] == 1
    assert result["calls"]["send"]["unknown"] > 0
    verdicts = {each["id"]: each["verdict"] for each in result["promises"]}
    assert verdicts["usage"] == verdicts["functions"] == "kept"
    assert result["usage"]["sent"]["metered"] > 0
    assert result["service"]["commit"] == result["by"]["commit"]


@pytest.mark.long
def test_a_killed_run_leaves_no_service(tmp_path: Path) -> None:
    """Its quicker sister has a service that does nothing (`tests/verifying/test_ending.py`)."""
    out = tmp_path / "verified"
    command = [str(COMMAND), "verify", "--start", "--faults", "--yes", "--out", str(out)]
    with subprocess.Popen(command, cwd=tmp_path, env=environment()) as run:
        ends = time.monotonic() + PATIENCE_SECONDS
        while len(_steps(out)) < 2:
            assert time.monotonic() < ends
            time.sleep(0.1)
        run.kill()
    folder = Path(_steps(out)[0]["folder"])

    while owner(folder / "data") is not None:
        assert time.monotonic() < ends
        time.sleep(0.1)
    (journal,) = out.glob("undo-*.jsonl")
    undone = run_command("verify", "--undo", str(journal), folder=tmp_path)
    assert undone.returncode == 0, undone.stderr
    assert undone.stdout.endswith(" steps undone\n")
    assert not folder.exists()


def _steps(out: Path) -> dict[int, Any]:
    for journal in out.glob("undo-*.jsonl"):
        return dict(read_steps(journal))
    return {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--faults",), "needs --start"),
        (("--stack", "queue"), "is for --faults"),
        (("--undo", "nothing.jsonl"), "is no journal"),
        (("http://127.0.0.1:9", "--start"), "starts a service"),
        (("--only", "nothing"), "one of singles"),
        (("--minutes", "21"), "minutes"),
        (("--max-dollars", "0.001", "--start"), "is more than --max-dollars"),
    ],
)
def test_an_unplayable_run_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    ran = run_command("verify", "--yes", *arguments, folder=tmp_path)
    assert ran.returncode in (1, 2)
    assert told in ran.stderr
    assert not (tmp_path / "verified").exists()
