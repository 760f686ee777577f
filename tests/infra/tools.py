"""The templates, and programs that live in a virtual environment of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterator, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from cirrusmq_local.cloud.cloudformation import StackTemplate

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "infra/examples/shop_template.yaml"
"""Queues in a template of others."""
KEPT = "RetainExceptOnCreate"
"""The deletion policy of what holds data: it outlives its stack, but not a creation that failed."""
TEMPLATES = [ROOT / "template.yaml", *sorted(ROOT.glob("infra/*/template.yaml"))]


MISSING = """\
import sys

class Missing:
    '''As if the packages of other parts were not installed.'''

    names = frozenset(sys.argv[1].split(","))

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Missing())
"""
"""The beginning of a program whose first argument are the modules of `modules_beside`."""


def modules_beside(distributions: Collection[str]) -> list[str]:
    """The modules that are installed here by other distributions than these."""
    return [
        module
        for module, names in packages_distributions().items()
        if not {name.lower().replace("_", "-") for name in names} & set(distributions)
    ]


def deployment(**given: Any) -> StackTemplate:
    """The template with these parameters; `stacks()` are those that are nested in it as well."""
    return StackTemplate(ROOT / "template.yaml", "cirrusmq", "local", given)


def nested(folder: str, **given: Any) -> StackTemplate:
    """The template in a folder of `infra`, nested in a deployment with these parameters."""
    (found,) = (each for each in deployment(**given).stacks() if each.path.parent.name == folder)
    return found


def of_type(resources: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The properties of the resources of a type, by logical id."""
    return {
        name: resource.get("Properties", {})
        for name, resource in resources.items()
        if resource["Type"] == kind
    }


def run_tool(
    program: str, *arguments: str | Path, cwd: Path | None = None, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `.venv-…/bin/…` of this checkout, with `given` on its standard input."""
    path = ROOT / program
    venv = program.partition("/")[0]
    assert path.exists(), f"{path} is missing: make {venv}/.installed makes it"
    # The user of the tests may have an account and a search path; neither has a say here.
    kept = {
        name: held for name, held in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))
    }
    return subprocess.run(
        [path, *arguments],
        cwd=cwd,
        input=given,
        env={**kept, "AWS_DEFAULT_REGION": "eu-central-1", "SAM_CLI_TELEMETRY": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


def texts(value: Any) -> Iterator[str]:
    """All texts in a document, its keys aside."""
    match value:
        case str():
            yield value
        case list():
            for held in value:
                yield from texts(held)
        case dict():
            yield from texts(list(value.values()))
