"""The release: ten digits computed from all deployed parts, so that each change goes live.

SAM publishes a version of a function only if the first ten characters of the parameter `Release`
are new, and callers reach only versions. So the release is computed from all parts of a version:
the layer, the functions, the templates with their state machines, and the parameters given here. A
parameter with NoEcho is left out, since many can read a release, and so is the tables' protection:
neither reaches a function's environment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cirrusmq_local.cloud.cloudformation import read

ROOT = Path(__file__).resolve().parents[2]
PARAMETER = "Release"
PROTECTED = "Protected"
DIGITS = 10
"""Number of characters that SAM uses for the name of a version; it ignores the rest."""
SOURCES = (
    "template.yaml",
    "infra/*/template.yaml",
    "infra/statemachines/*.json",
    "layers/core/**/*",
    "functions/**/*",
)


class ReleaseError(Exception):
    """A parameter or an option is not accepted; the text names it."""


def release(root: Path, parameters: Mapping[str, str]) -> str:
    """Returns the release of the sources below `root` with parameters: ten hexadecimal digits."""
    secret = {name for name, held in declared(root).items() if held.get("NoEcho")}
    left_out = {*secret, PROTECTED}
    shown = {name: value for name, value in parameters.items() if name not in left_out}
    digest = hashlib.sha256(json.dumps(shown, sort_keys=True).encode())
    for path in sources(root):
        # With lengths, so that content cannot move from one file to the next unnoticed.
        content = path.read_bytes()
        name = path.relative_to(root).as_posix()
        digest.update(json.dumps([name, len(content)]).encode())
        digest.update(content)
    return digest.hexdigest()[:DIGITS]


def sources(root: Path) -> Iterator[Path]:
    """Yields the files of a deployment, in a fixed order."""
    found = {path for pattern in SOURCES for path in root.glob(pattern) if path.is_file()}
    return iter(sorted(path for path in found if "__pycache__" not in path.parts))


def declared(root: Path) -> dict[str, dict[str, Any]]:
    """Returns the parameters of the template."""
    held: dict[str, dict[str, Any]] = read(root / "template.yaml")["Parameters"]
    return held


def read_parameters(root: Path, given: Sequence[str]) -> dict[str, str]:
    """Returns parameters given as `Name=Value`. Raises ReleaseError for an unknown one."""
    known = declared(root)
    parameters: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise ReleaseError(f"{text}: a parameter must be given as Name=Value")
        if name == PARAMETER:
            raise ReleaseError(f"{PARAMETER} must not be given: it is computed")
        if name not in known:
            raise ReleaseError(f"{name} is no parameter; there are {', '.join(sorted(known))}")
        if name in parameters:
            raise ReleaseError(f"{name} must be given once")
        parameters[name] = value
    return parameters
