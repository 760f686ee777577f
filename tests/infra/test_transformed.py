"""The permissions that are deployed: what SAM adds to the template is in them too."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

# SAM gives each function a log to write to and traces to send; both know no narrower resource.
ADDED_BY_SAM = {"AWSLambdaBasicExecutionRole", "AWSXrayWriteOnlyAccess", "AWSXRayDaemonWriteAccess"}
STARS_BY_DESIGN = {"FindTheStream", "DeliverLogs"}


@pytest.fixture(scope="module")
def roles(root: Path) -> dict[str, Any]:
    python = root / ".venv-sam" / "bin" / "python"
    if not python.exists():
        pytest.fail(f"{python} is missing: make .venv-sam/.installed makes it")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "AWS_DEFAULT_REGION": "eu-central-1",
        "SAM_CLI_TELEMETRY": "0",
    }
    run = subprocess.run(
        [python, Path(__file__).with_name("transform.py"), root / "template.yaml"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    resources = yaml.safe_load(run.stdout)["Resources"]
    return {
        name: resource["Properties"]
        for name, resource in resources.items()
        if resource["Type"] == "AWS::IAM::Role"
    }


def statements(roles: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for role in roles.values():
        for policy in role.get("Policies", []):
            yield from policy["PolicyDocument"]["Statement"]


def texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for held in value:
                yield from texts(held)
        case dict():
            yield from texts(list(value.values()))


def test_every_function_and_state_machine_has_a_role_of_its_own(
    roles: dict[str, Any], resources: dict[str, Any]
) -> None:
    needing = [
        name
        for name, resource in resources.items()
        if resource["Type"] in ("AWS::Serverless::Function", "AWS::Serverless::StateMachine")
    ]
    assert set(roles) == {f"{name}Role" for name in needing}


def test_only_logs_and_traces_are_added_to_what_the_template_allows(roles: dict[str, Any]) -> None:
    ready_made = {
        text.rpartition("/")[2]
        for role in roles.values()
        for held in role["ManagedPolicyArns"]
        for text in texts(held)
        if "policy/" in text
    }
    assert ready_made <= ADDED_BY_SAM


def test_nothing_deployed_is_a_wildcard(roles: dict[str, Any]) -> None:
    wild = {
        statement["Sid"]
        for statement in statements(roles)
        for text in texts([statement["Action"], statement["Resource"]])
        if "*" in text
    }
    assert wild == STARS_BY_DESIGN
