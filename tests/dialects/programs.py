"""Programs as users write them, started beside a running service, and the pages that show them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EMQ_SDK = ROOT / ".emq-sdk"
NEEDS_EMQ = pytest.mark.skipif(
    not (EMQ_SDK / "emq").exists(), reason="EMQ's SDK is missing: make tools"
)
_NODE, SDKS = shutil.which("node"), ROOT / ".node"


def environment_of(running: Mapping[str, Any], *names: str) -> dict[str, str]:
    """The environment of a program that reads URL, id of the key and secret by these names."""
    key = running["signing_key"]
    values = (running["dialect_url"], key["access_key_id"], key["secret"])
    return {**os.environ, **dict(zip(names, values, strict=True))}


def check_example(
    name: str, env: Mapping[str, str], folder: Path, got: list[str], *, seconds: int = 60
) -> None:
    """Run an example, which sends two messages and tells what it gets."""
    told = run_example(name, env, folder, seconds=seconds)
    assert [line.startswith("sent Msg-") for line in told[:2]] == [True, True]
    assert sorted(told[2:]) == got


def run_example(name: str, env: Mapping[str, str], folder: Path, *, seconds: int = 60) -> list[str]:
    """The lines that an example prints."""
    run = subprocess.run(
        [sys.executable, HERE / "examples" / name],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def needs_node(sdk: str) -> pytest.MarkDecorator:
    """Skips a test where Node, or a package for it, is missing."""
    missing = _NODE is None or not (SDKS / "node_modules" / sdk).exists()
    return pytest.mark.skipif(missing, reason=f"Node or {sdk} is missing: make tools")


def check_node(
    script: str, running: Mapping[str, Any], name: str, folder: Path, *, seconds: int = 60
) -> None:
    """Run a client for Node, which prints `done` at its end; `name`: what it works on."""
    shutil.copy(HERE / "node" / script, folder)
    (folder / "node_modules").symlink_to(SDKS / "node_modules")
    key = running["signing_key"]
    assert _NODE is not None
    run = subprocess.run(
        [_NODE, script, running["dialect_url"], key["access_key_id"], key["secret"], name],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    assert run.stdout == "done\n", run.stderr
