"""The templates, as the stack reads them and as CloudFormation gets them."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws
from tests.infra.tools import ROOT, TEMPLATES, deployment, run_tool

from cirrusmq_local.cloud import cloudformation
from cirrusmq_local.cloud.cloudformation import StackTemplate
from cirrusmq_local.cloud.template import Template, load

# The jobs are programs, not an installed package.
sys.path[:0] = [str(ROOT), str(ROOT / "infra"), str(ROOT / "spark_emr")]


@pytest.fixture(scope="session", autouse=True)
def parsed_once() -> Iterator[None]:
    """What a template's text holds is read once in a process, and changed by nobody."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cloudformation, "_parsed", cache(cloudformation._parsed))
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def template() -> Template:
    return load(ROOT / "template.yaml")


@pytest.fixture(scope="session")
def stacks() -> list[StackTemplate]:
    """The template, then those that are nested in it."""
    return list(deployment().stacks())


@pytest.fixture(scope="session")
def documents(stacks: list[StackTemplate]) -> list[dict[str, Any]]:
    """Each of them with its references resolved: an ARN is `<logical id>.Arn`."""
    return [stack.resolve(stack.document) for stack in stacks]


@pytest.fixture(scope="session")
def document(documents: list[dict[str, Any]]) -> dict[str, Any]:
    return documents[0]


@pytest.fixture(scope="session")
def resources(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Those of the whole deployment, by logical id."""
    return {name: held for each in documents for name, held in each["Resources"].items()}


@pytest.fixture(scope="session")
def transformed(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The templates as CloudFormation gets them, in files placed to each other as here."""
    names = [str(path.relative_to(ROOT)) for path in TEMPLATES]
    folder = _for_all_workers(tmp_path_factory)
    with (folder.parent / "transformed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            made = tmp_path_factory.mktemp("transforming")
            script = ROOT / "infra/transform.py"
            run = run_tool(".venv-sam/bin/python", script, ROOT, made, *names)
            assert run.returncode == 0, run.stderr
            made.rename(folder)
    return [folder / name for name in names]


@pytest.fixture
def in_aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account in memory, with nothing in it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield


def _for_all_workers(factory: pytest.TempPathFactory) -> Path:
    """The first process that needs them makes them for the others of a run."""
    base = factory.getbasetemp()
    # To checkov 40 letters, digits and slashes in a row are a secret, in a path as well.
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "transformed-here"
