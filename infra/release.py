"""Builds and deploys the service under a new release, so that all that changed goes live.

SAM publishes a version of a function only where the first ten characters of the parameter
`Release` are new, and callers reach versions alone. So the release is made of everything that a
version is made of: the layer, the functions, the templates with their state machines, and the
parameters given here. A parameter that is not echoed stays out, since many can read a release; none
of these reaches a function's environment.

python -m infra.release <stack> [Name=Value …] [-- <options of sam deploy>]
python -m infra.release --show [Name=Value …]      prints the release, deploys nothing
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cirrusmq_local.cloud.cloudformation import read
from cirrusmq_local.cloud.stack_names import StackNameError, check_stack_name

ROOT = Path(__file__).resolve().parents[1]
PARAMETER = "Release"
DIGITS = 10
"""So many characters SAM takes into the name of a version; it passes by the rest."""
SOURCES = (
    "template.yaml",
    "infra/*/template.yaml",
    "infra/statemachines/*.json",
    "layers/core/**/*",
    "functions/**/*",
)
CAPABILITIES = ("CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND")
SAM = ".venv-sam/bin/sam"


class ReleaseError(Exception):
    """A parameter was given that cannot be taken; the text says which."""


def release(root: Path, parameters: Mapping[str, str]) -> str:
    """The release of the sources below `root` with these parameters: ten hexadecimal digits."""
    secret = {name for name, held in declared(root).items() if held.get("NoEcho")}
    shown = {name: value for name, value in parameters.items() if name not in secret}
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


def deploy(stack: str, parameters: Mapping[str, str], options: Sequence[str]) -> int:
    """Build and deploy; answers the status of what failed, or 0."""
    sam = str(ROOT / SAM)
    # The manual's pages are files of a function.
    for command in ([sys.executable, "-m", "infra.manual"], [sam, "build"]):
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        if status:
            return status
    given = {**parameters, PARAMETER: release(ROOT, parameters)}
    print(f"{stack}: release {given[PARAMETER]}", flush=True)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        # JSON, under the name of a form that sam reads and that it is part of. A file needs no
        # quotes, and a value in it is in no list of processes.
        json.dump(given, file)
        file.flush()
        command = [
            *(sam, "deploy", "--stack-name", stack, "--resolve-s3"),
            *("--capabilities", *CAPABILITIES),
            *("--parameter-overrides", f"file://{file.name}"),
            *options,
        ]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


def main(arguments: Sequence[str]) -> int:
    """Run the command line; answers the status."""
    given = list(arguments)
    end = given.index("--") if "--" in given else len(given)
    given, options = given[:end], given[end + 1 :]
    if not given or (given[0].startswith("-") and given[0] != "--show") or "=" in given[0]:
        print(__doc__.partition("\n\n")[2].rpartition("\n\n")[2], end="", file=sys.stderr)
        return 2
    stack, *texts = given
    try:
        parameters = read_parameters(ROOT, texts)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 2
    if stack == "--show":
        print(release(ROOT, parameters))
        return 0
    try:
        check_stack_name(ROOT / "template.yaml", stack)
    except StackNameError as error:
        print(error, file=sys.stderr)
        return 2
    return deploy(stack, parameters, options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
