"""Deploys: looks first, builds, runs `sam deploy`, and protects the tables of a new stack.

A new stack is made with tables that a failed creation can delete again, and an update right behind
protects them.
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
"""Options of `sam deploy` that change nothing of what a version is made of."""


def read_options(given: Sequence[str]) -> dict[str, str]:
    """Options of `sam deploy` with their values; ReleaseError for what is not passed on."""
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
    """Build and deploy. Returns the status of what failed, or 0."""
    sam = str(ROOT / preflight.SAM)
    # The manual's pages are files of a function.
    for command in ([sys.executable, "-m", "infra.manual"], [sam, "build"]):
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        if status:
            return status
    given = {**parameters, PARAMETER: release(ROOT, parameters)}
    print(f"{stack}: release {given[PARAMETER]}", flush=True)
    # A bucket of one's own takes the place of the one that sam makes.
    bucket = () if any(each.startswith("--s3-bucket") for each in options) else ("--resolve-s3",)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        # JSON, under the name of a form that sam reads and that it is part of. A file needs no
        # quotes, and a value in it is in no list of processes.
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
    """Protect the tables of a stack that was just made, which changes nothing else."""
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
    """Look, deploy, protect. Returns the status."""
    told = read_options(options)
    session = boto3.session.Session(
        region_name=told.get("--region"), profile_name=told.get("--profile")
    )
    problems, found = preflight.find_problems(ROOT, stack, parameters, session)
    if problems:
        print(*problems, sep="\n", file=sys.stderr)
        return 2
    if found is not None:
        # Also where a deployment stopped between the creation and its protection.
        return deploy(stack, {PROTECTED: "true", **parameters}, options)
    status = deploy(stack, {PROTECTED: "false", **parameters}, options)
    if status or parameters.get(PROTECTED) == "false" or "--no-execute-changeset" in told:
        return status
    protect(session, stack)
    return 0
