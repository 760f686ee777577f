"""The release: ten digits of all that is deployed, so that all that changed goes live.

SAM publishes a version of a function only where the first ten characters of the parameter
`Release` are new, and callers reach versions alone. So the release is made of everything that a
version is made of: the layer, the functions, the templates with their state machines, and the
parameters given here. A parameter that is not echoed stays out, since many can read a release, and
so does the tables' protection: none of these reaches a function's environment.
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
"""So many characters SAM takes into the name of a version; it passes by the rest."""
SOURCES = (
    "template.yaml",
    "infra/*/template.yaml",
    "infra/statemachines/*.json",
    "layers/core/**/*",
    "functions/**/*",
)


class ReleaseError(Exception):
    """A parameter was given that cannot be taken; the text says which."""


def release(root: Path, parameters: Mapping[str, str]) -> str:
    """The release of the sources below `root` with these parameters: ten hexadecimal digits."""
    secret = {name for name, held in declared(root).items() if held.get("NoEcho")}
    left_out = {*secret, PROTECTED}
    shown = {name: value for name, value in parameters.items() if name not in left_out}
    digest = hashlib.sha256(json.dumps(shown, sort_keys=True).encode())
    for path in sources(root):
        # Lengths, so that nothing can move from one file to the next unnoticed.
        content = path.read_bytes()
        name = path.relative_to(root).as_posix()
        digest.update(json.dumps([name, len(content)]).encode())
        digest.update(content)
    return digest.hexdigest()[:DIGITS]


def sources(root: Path) -> Iterator[Path]:
    """The files that a deployment is made of, in one order."""
    found = {path for pattern in SOURCES for path in root.glob(pattern) if path.is_file()}
    return iter(sorted(path for path in found if "__pycache__" not in path.parts))


def declared(root: Path) -> dict[str, dict[str, Any]]:
    """The parameters of the template."""
    held: dict[str, dict[str, Any]] = read(root / "template.yaml")["Parameters"]
    return held


def read_parameters(root: Path, given: Sequence[str]) -> dict[str, str]:
    """`Name=Value` each; ReleaseError for what the template does not have."""
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
