"""Deploys: checks first, builds, runs `sam deploy`, and protects the tables of a new stack.

A new stack is made with tables that a failed creation can delete again, and an update right after
it protects them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

import boto3

from . import PARAMETER, PROTECTED, ROOT, ReleaseError, preflight, release

CAPABILITIES = ("CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND")
PASSED_ON = (
    *("--region", "--profile", "--role-arn", "--s3-bucket", "--s3-prefix", "--kms-key-id"),
    *("--notification-arns", "--tags", "--confirm-changeset", "--no-execute-changeset"),
    *("--disable-rollback", "--max-wait-duration", "--no-progressbar", "--debug"),
)
"""Options of `sam deploy` that do not change a version's content."""


def read_options(given: Sequence[str]) -> dict[str, str]:
    """Returns options of `sam deploy` with their values. Raises ReleaseError for other options."""
    found: dict[str, str] = {}
    name = ""
    for text in given:
        if not text.startswith("--"):
            if not name:
                raise ReleaseError(f"{text}: an option begins with --")
            found[name] = text
            continue
        name, _, found_value = text.partition("=")
        if name not in PASSED_ON:
            known = ", ".join(PASSED_ON)
            raise ReleaseError(
                f"{name} is not passed on: what it changes is not in the release. There are {known}"
            )
        found[name] = found_value
    return found


def deploy(stack: str, parameters: Mapping[str, str], options: Sequence[str]) -> int:
    """Builds and deploys. Returns the status of the failed command, or 0."""
    sam = str(ROOT / preflight.SAM)
    # The manual's pages are files of a function.
    for command in ([sys.executable, "-m", "infra.manual"], [sam, "build"]):
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        if status:
            return status
    given = {**parameters, PARAMETER: release(ROOT, parameters)}
    print(f"{stack}: release {given[PARAMETER]}", flush=True)
    # A bucket of the user replaces the bucket that sam makes.
    bucket = () if any(each.startswith("--s3-bucket") for each in options) else ("--resolve-s3",)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        # JSON, with the suffix of YAML, which sam reads and of which JSON is a part. A file needs
        # no quotes, and its values do not appear in the list of processes.
        json.dump(given, file)
        file.flush()
        command = [
            *(sam, "deploy", "--stack-name", stack, *bucket),
            *("--capabilities", *CAPABILITIES),
            *("--parameter-overrides", f"file://{file.name}"),
            *options,
        ]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


def protect(session: boto3.session.Session, stack: str) -> None:
    """Protects the tables of a new stack, and changes nothing else."""
    cloudformation = session.client("cloudformation")
    (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    names = [each["ParameterKey"] for each in found["Parameters"]]
    kept = [{"ParameterKey": name, "UsePreviousValue": True} for name in names if name != PROTECTED]
    cloudformation.update_stack(
        StackName=stack,
        UsePreviousTemplate=True,
        Capabilities=list(CAPABILITIES),
        Parameters=[*kept, {"ParameterKey": PROTECTED, "ParameterValue": "true"}],
    )
    cloudformation.get_waiter("stack_update_complete").wait(StackName=stack)


def run(stack: str, parameters: dict[str, str], options: Sequence[str]) -> int:
    """Checks, deploys, protects. Returns the exit status."""
    told = read_options(options)
    session = boto3.session.Session(
        region_name=told.get("--region"), profile_name=told.get("--profile")
    )
    problems, found = preflight.find_problems(ROOT, stack, parameters, session)
    if problems:
        print(*problems, sep="\n", file=sys.stderr)
        return 2
    if found is not None:
        # Also if a deployment stopped between the creation and the protection.
        return deploy(stack, {PROTECTED: "true", **parameters}, options)
    status = deploy(stack, {PROTECTED: "false", **parameters}, options)
    if status or parameters.get(PROTECTED) == "false" or "--no-execute-changeset" in told:
        return status
    protect(session, stack)
    return 0
