"""The template, as the stack reads it and as CloudFormation gets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local import cloudformation
from cirrusmq_local.template import Template, load

ROOT = Path(__file__).resolve().parents[2]


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
