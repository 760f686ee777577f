"""Releases: all that changed in a deployment goes live, and nothing that did not."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.infra.tools import run_tool

from cirrusmq_local.cloud.cloudformation import Intrinsic, read
from release import DIGITS, PROTECTED, ReleaseError, read_parameters, release, sources
from release.__main__ import main

LAYERS = ("s3://bucket/one", "s3://bucket/other")


@pytest.fixture
def copied(root: Path, tmp_path: Path) -> Path:
    """A copy of what a deployment is made of."""
    for path in sources(root):
        target = tmp_path / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return tmp_path


def referred(value: Any) -> Iterator[str]:
    """Names in the references of a value."""
    match value:
        case Intrinsic(function="Ref" | "GetAtt", argument=str(name)):
            yield name
        case Intrinsic(function="Sub", argument=str(text)):
            yield from re.findall(r"\$\{(\w+)\}", text)
        case Intrinsic(function="If", argument=[str(condition), *held]):
            yield condition
            yield from referred(held)
        case Intrinsic(argument=held):
            yield from referred(held)
        case dict():
            yield from referred(list(value.values()))
        case list():
            for held in value:
                yield from referred(held)


def in_an_environment(root: Path) -> set[str]:
    """The parameters that reach an environment of a function."""
    document = read(root / "template.yaml")
    holders = [document["Globals"]["Function"]] + [
        resource["Properties"]
        for resource in document["Resources"].values()
        if resource["Type"] == "AWS::Serverless::Function"
    ]
    told = [held["Environment"]["Variables"] for held in holders if "Environment" in held]
    names = set(referred(told))
    conditions = document["Conditions"]
    names |= {n for c in names & conditions.keys() for n in referred(conditions[c])}
    return {name for name in document["Parameters"] if name in names}


def version_ids(root: Path, deployments: list[dict[str, Any]]) -> list[set[str]]:
    """The ids of the functions' versions in each deployment."""
    script = root / "tests/infra/version_ids.py"
    given = json.dumps(deployments)
    run = run_tool(".venv-sam/bin/python", script, root / "template.yaml", given=given)
    assert run.returncode == 0, run.stderr
    return [set(ids) for ids in json.loads(run.stdout)]


def other_value(parameter: dict[str, Any]) -> str:
    allowed = [str(each) for each in parameter.get("AllowedValues", [])]
    others = [each for each in allowed if each != str(parameter["Default"])]
    return others[0] if others else "7"


@pytest.mark.long
def test_a_change_goes_live_behind_every_alias(root: Path, copied: Path) -> None:
    """Of a changed layer, and of each changed parameter, SAM alone makes no version."""
    parameters = read(root / "template.yaml")["Parameters"]
    reaching = sorted(in_an_environment(root))
    assert {"LogLevel", "PublicUrl", "AccountRequestsPerSecond"} <= set(reaching)
    changes: list[dict[str, str]] = [{}] + [
        {name: other_value(parameters[name])} for name in reaching
    ]
    deployed = [
        {"layer": LAYERS[0], "parameters": {**each, "Release": release(root, each)}}
        for each in changes
    ]
    with (copied / "layers/core/cirrusmq/__init__.py").open("a") as file:
        file.write("\n")
    deployed.append({"layer": LAYERS[1], "parameters": {"Release": release(copied, {})}})
    without = [{"layer": layer, "parameters": {}} for layer in LAYERS]
    *ids, one, other = version_ids(root, deployed + without)
    assert one == other  # so it does take a release
    resources = read(root / "template.yaml")["Resources"].values()
    functions = [each for each in resources if each["Type"] == "AWS::Serverless::Function"]
    assert len(functions) == 14
    assert all(len(each) == len(functions) for each in ids)
    assert len(set.union(*ids)) == len(functions) * len(ids)


def test_the_same_sources_and_parameters_are_the_same_release(root: Path, copied: Path) -> None:
    parameters = {"LogLevel": "DEBUG", "Stage": "test"}
    (copied / "functions/send/__pycache__").mkdir()
    (copied / "functions/send/__pycache__/app.cpython-313.pyc").write_bytes(b"compiled")
    backwards = dict(reversed(parameters.items()))
    assert release(copied, backwards) == release(root, parameters)
    assert re.fullmatch(f"[0-9a-f]{{{DIGITS}}}", release(root, {}))


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "path",
    [
        "template.yaml",
        "functions/send/app.py",
        "layers/core/requirements.txt",
        "infra/rollouts/template.yaml",
        "infra/statemachines/retry_schedule.asl.json",
    ],
)
def test_each_file_of_a_deployment_is_part_of_its_release(copied: Path, path: str) -> None:
    before = release(copied, {})
    with (copied / path).open("a") as file:
        file.write("\n")
    assert release(copied, {}) != before


@pytest.mark.long
def test_each_parameter_is_part_of_the_release_but_secrets_and_the_protection(
    copied: Path,
) -> None:
    names = sorted(read(copied / "template.yaml")["Parameters"].keys() - {PROTECTED})
    found = {release(copied, {name: "7"}) for name in names}
    assert len(found | {release(copied, {})}) == len(names) + 1
    assert release(copied, {PROTECTED: "false"}) == release(copied, {})
    template = copied / "template.yaml"
    text = template.read_text()
    template.write_text(text.replace("  Stage:\n    {", "  Stage:\n    {NoEcho: true, "))
    assert release(copied, {"Stage": "one"}) == release(copied, {"Stage": "two"})


def test_no_secret_parameter_reaches_an_environment(root: Path) -> None:
    parameters = read(root / "template.yaml")["Parameters"]
    reaching = in_an_environment(root)
    assert PROTECTED not in reaching
    assert not [name for name in reaching if parameters[name].get("NoEcho")]


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ("LogLevel", "LogLevel: a parameter must be given as Name=Value"),
        ("Release=0123456789", "Release must not be given: it is computed"),
        ("Loglevel=DEBUG", "Loglevel is no parameter; there are AccessLog, AccountRequests"),
        ("Stage=a Stage=b", "Stage must be given once"),
    ],
)
def test_a_wrong_parameter_is_refused(root: Path, given: str, refusal: str) -> None:
    with pytest.raises(ReleaseError, match=f"^{refusal}"):
        read_parameters(root, given.split())


def test_the_command_shows_a_release_and_refuses_in_one_line(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--show", "ReportsSchedule=cron(30 2 * * ? *)"]) == 0
    shown = release(root, {"ReportsSchedule": "cron(30 2 * * ? *)"})
    assert capsys.readouterr().out == f"{shown}\n"
    assert main(["cirrusmq", "Release=1"]) == 2
    assert capsys.readouterr().err == "Release must not be given: it is computed\n"
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("python -m infra.release <stack>")


def test_sam_reads_the_parameters_as_they_were_given(tmp_path: Path) -> None:
    """Blanks, quotes and commas in values survive the way through a file."""
    given = {"ReportsSchedule": "cron(30 1 * * ? *)", "AllowedNetworks": "10.1.0.0/16, ::1/128"}
    file = tmp_path / "parameters.yaml"
    file.write_text(json.dumps(given))
    code = (
        "import json, sys; from samcli.cli.types import CfnParameterOverridesType as T;"
        "print(json.dumps(T().convert((sys.argv[1],), None, None)))"
    )
    run = run_tool(".venv-sam/bin/python", "-c", code, f"file://{file}")
    assert json.loads(run.stdout) == given, run.stderr
