"""`cirrusmq env`: what it prints sets a shell, a file, a container and a workflow up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_command
from tests.dialects.programs import HERE
from tests.stack import COMMAND, environment

from cirrusmq_client.connection import DATA, FILE

PATH = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
LIBRARY = ("CIRRUSMQ_URL", "CIRRUSMQ_ACCESS_KEY_ID", "CIRRUSMQ_SECRET")


@pytest.fixture
def folder(running: dict[str, Any], tmp_path: Path) -> Path:
    """A folder in which `cirrusmq up` has left the key of a running service."""
    (tmp_path / DATA).mkdir()
    (tmp_path / DATA / FILE).write_text(json.dumps(running), encoding="utf-8")
    return tmp_path


def in_a_shell(folder: Path, script: str) -> str:
    """What a script prints in a shell that knows nothing of the service."""
    run = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env=environment() | {"PATH": PATH},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def printed(folder: Path, *arguments: str, **env: str) -> tuple[dict[str, str], str]:
    """The variables that the command prints, one a line, and its standard error."""
    run = run_command(["env", *arguments], env=environment() | env, folder=folder)
    assert run.returncode == 0, run.stderr
    return dict(line.split("=", 1) for line in run.stdout.splitlines()), run.stderr


def test_a_shell_calls_the_service_by_it(folder: Path) -> None:
    key = "$CIRRUSMQ_ACCESS_KEY_ID:$CIRRUSMQ_SECRET"
    curl = f'curl -sf "$CIRRUSMQ_URL/queues" -H "Authorization: Bearer {key}"'

    answer = in_a_shell(folder, f'eval "$(cirrusmq env)"; cd /; {curl}')

    assert "queues" in json.loads(answer)


@pytest.mark.long
def test_a_program_for_sqs_runs_by_it(folder: Path, orders: None) -> None:
    example = HERE / "examples/orders.py"

    answer = in_a_shell(folder, f'eval "$(cirrusmq env sqs)"; {sys.executable} {example}')

    assert [line[:4] for line in answer.splitlines()] == ["sent", "sent", "got ", "got "]


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("cmq", ("CMQ_ENDPOINT", "SECRET_ID", "SECRET_KEY")),
        ("rocketmq", ("MQ_ENDPOINT", "ACCESS_KEY", "SECRET_KEY")),
    ],
)
def test_programs_for_other_services_get_their_own_names(
    folder: Path, running: dict[str, Any], program: str, names: tuple[str, ...]
) -> None:
    key = running["signing_key"]
    values = (running["dialect_url"], key["access_key_id"], key["secret"])

    assert printed(folder, program, "--for", "dotenv")[0] == dict(zip(names, values, strict=True))


def test_a_container_finds_its_host_machine(folder: Path, running: dict[str, Any]) -> None:
    found, _ = printed(folder, "--for", "docker")

    port = running["url"].rpartition(":")[2]
    values = (f"http://host.docker.internal:{port}", running["access_key_id"], running["secret"])
    assert found == dict(zip(LIBRARY, values, strict=True))


def test_a_workflow_does_not_print_the_secret_any_more(
    folder: Path, running: dict[str, Any]
) -> None:
    found, told = printed(folder, "--for", "github", GITHUB_ACTIONS="true")

    assert found["CIRRUSMQ_SECRET"] == running["secret"]
    assert told == f"::add-mask::{running['secret']}\n"
    assert printed(folder, "--for", "github")[1] == ""


def test_the_environment_comes_first(folder: Path) -> None:
    given = dict(zip(LIBRARY, ("https://queue.example", "AKgiven", "given-secret"), strict=True))

    assert printed(folder, "--for", "dotenv", **given)[0] == given


def test_it_says_so_without_a_service(tmp_path: Path) -> None:
    for arguments in (["env"], ["env", "sqs"]):
        run = run_command(arguments, env=environment(), folder=tmp_path)

        assert (run.returncode, run.stdout) == (1, "")
        assert "connection.json" in run.stderr
        assert "cirrusmq up" in run.stderr
