"""The template, as the stack reads it and as CloudFormation gets it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.infra.tools import ROOT, run_tool

from cirrusmq_local.cloud import cloudformation
from cirrusmq_local.cloud.template import Template, load

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
    script = Path(__file__).with_name("transform.py")
    run = run_tool(".venv-sam/bin/python", script, ROOT / "template.yaml")
    assert run.returncode == 0, run.stderr
    path = tmp_path_factory.mktemp("transformed") / "template.yaml"
    path.write_text(run.stdout)
    return path
