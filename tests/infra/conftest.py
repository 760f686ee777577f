"""The template, as the stack reads it and as CloudFormation gets it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local import cloudformation
from cirrusmq_local.template import Template, load

ROOT = Path(__file__).resolve().parents[2]
# The jobs are programs, not an installed package.
sys.path[:0] = [str(ROOT), str(ROOT / "spark_emr")]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def template() -> Template:
    return load(ROOT / "template.yaml")


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    """The template with its references resolved: an ARN is `<logical id>.Arn`."""
    read = cloudformation.read(ROOT / "template.yaml")
    resolved: dict[str, Any] = cloudformation.Resolver(read, "cirrusmq", "local").resolve(read)
    return resolved


@pytest.fixture(scope="session")
def resources(document: dict[str, Any]) -> dict[str, Any]:
    held: dict[str, Any] = document["Resources"]
    return held


@pytest.fixture(scope="session")
def transformed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template as CloudFormation gets it, in a file."""
    python = ROOT / ".venv-sam" / "bin" / "python"
    if not python.exists():
        pytest.fail(f"{python} is missing: make .venv-sam/.installed makes it")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "AWS_DEFAULT_REGION": "eu-central-1",
        "SAM_CLI_TELEMETRY": "0",
    }
    run = subprocess.run(
        [python, Path(__file__).with_name("transform.py"), ROOT / "template.yaml"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    path = tmp_path_factory.mktemp("transformed") / "template.yaml"
    path.write_text(run.stdout)
    return path
