"""EMQ's SDK against the service as its users start it, in a process of its own: every call."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.dialects.programs import EMQ_SDK, HERE, NEEDS_EMQ, check_example, environment_of

pytestmark = NEEDS_EMQ


def run(running: dict[str, Any], folder: Path, part: str) -> None:
    """Runs a part of the program, with nothing but another endpoint and another key."""
    key = running["signing_key"]
    given = [running["dialect_url"], key["access_key_id"], key["secret"], f"q-{uuid.uuid4().hex}"]
    done = subprocess.run(
        [sys.executable, HERE / "emq_program.py", *given, part],
        env={**os.environ, "PYTHONPATH": str(EMQ_SDK)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.stdout == "done\n", done.stderr


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "part",
    [
        "on_queues",
        "on_tags",
        "on_messages",
        "in_order",
        "on_statistics",
        "refused_keys",
        "one_host",
    ],
)
def test_every_call_of_a_part(running: dict[str, Any], tmp_path: Path, part: str) -> None:
    """The calls are in `"emq_program.py"`."""
    run(running, tmp_path, part)


@pytest.mark.usefixtures("orders")
def test_the_example_runs_with_another_endpoint_and_key_in_its_environment(
    running: dict[str, Any], tmp_path: Path
) -> None:
    env = environment_of(running, "EMQ_ENDPOINT", "SECRET_ID", "SECRET_KEY")
    env["PYTHONPATH"] = str(EMQ_SDK)
    check_example("emq_orders.py", env, tmp_path, ["got coffee", "got tea"])
