"""Environment variables: the code reads only those that are set, and reads all of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.infra.tools import TEMPLATES

from cirrusmq_local.cloud.template import ALL_DIALECTS, Function, Template, load

SET_BY_LAMBDA = {"AWS_REGION", "AWS_LAMBDA_INITIALIZATION_TYPE"}
SET_BY_THE_LOCAL_STACK = {"REPORTS_FOLDER", "SQS_PARTITIONS"}
ROLE_FUNCTION = re.compile(r"\binvoke\(\s*\"(\w+)\"")


def variables(tree: ast.AST) -> Iterator[str]:
    """Names in `os.environ["…"]` and `os.environ.get("…")`."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(
                value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name))
            ):
                yield name
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name


@pytest.fixture(scope="module")
def read(root: Path) -> set[str]:
    """The variables that the functions and their layer read."""
    found: set[str] = set()
    for path in [*root.glob("functions/**/*.py"), *root.glob("layers/core/**/*.py")]:
        text = path.read_text()
        found |= set(variables(ast.parse(text)))
        found |= {f"{role.upper()}_FUNCTION" for role in ROLE_FUNCTION.findall(text)}
    # What Powertools is told is checked below.
    return {name for name in found if not name.startswith("POWERTOOLS_")}


def given(template: Template) -> set[str]:
    return {name for function in template.functions for name in function.environment}


def test_read_variables_are_set_and_set_variables_are_read(root: Path, read: set[str]) -> None:
    template = load(root / "template.yaml", {"Dialects": ALL_DIALECTS})
    own = {name for name in given(template) if not name.startswith("POWERTOOLS_")}
    assert own == read - SET_BY_LAMBDA - SET_BY_THE_LOCAL_STACK
    assert {"DIRECTORY_TABLE", "PUSH_FUNCTION", "REPORTS_BUCKET"} <= own


def test_powertools_knows_its_given_variables(template: Template) -> None:
    from aws_lambda_powertools.shared import constants

    known = {value for value in vars(constants).values() if isinstance(value, str)}
    told = {name for name in given(template) if name.startswith("POWERTOOLS_")}
    assert told
    assert told <= known


def allowed(resources: dict[str, Any], function: Function, action: str) -> list[str]:
    """The resources on which the function may do this."""
    found: list[str] = []
    for policy in resources[function.logical_id]["Properties"]["Policies"]:
        for statement in policy["Statement"] if isinstance(policy, dict) else ():
            if action in statement["Action"]:
                held = statement["Resource"]
                found += held if isinstance(held, list) else [held]
    return found


def test_a_function_is_told_its_allowed_targets_and_nothing_else(
    template: Template, resources: dict[str, Any]
) -> None:
    # Always the alias: what a function starts rolls, too.
    by_arn = {
        f"{arn}:live": f"{function.name}:live"
        for function in template.functions
        for arn in (f"{function.logical_id}.Arn", function.arn)
    }
    # But for versions that are tried before they roll; here a version is its function.
    by_arn |= {function.name: function.name for function in template.functions}
    for function in template.functions:
        told = {
            value
            for name, value in function.environment.items()
            if name.endswith(("_FUNCTION", "_VERSION"))
        }
        may_invoke = allowed(resources, function, "lambda:InvokeFunction")
        assert told == {by_arn[arn] for arn in may_invoke}, function.name
        starts = bool(allowed(resources, function, "states:StartExecution"))
        assert ("RETRY_SCHEDULE_ARN" in function.environment) == starts, function.name
        shows = bool(allowed(resources, function, "s3:GetObject"))
        assert ("REPORTS_BUCKET" in function.environment) == shows, function.name


def sections(path: Path) -> dict[str, str]:
    """The text below each key of a template."""
    return dict(re.findall(r"^(\w+):(.*?)(?=^\w|\Z)", path.read_text(), re.M | re.S))


def parameters(path: Path) -> list[str]:
    return re.findall(r"^  (\w+):$", sections(path)["Parameters"], re.M)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.parent.name)
def test_every_parameter_of_a_template_decides_something(path: Path) -> None:
    deciding = [
        text for key, text in sections(path).items() if key not in ("Metadata", "Parameters")
    ]
    names = parameters(path)
    assert names
    for name in names:
        used = re.search(rf"!Ref {name}\b|\$\{{{name}\}}|FindInMap.*{name}", "".join(deciding))
        assert used, name
