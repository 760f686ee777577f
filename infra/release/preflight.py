"""Checks before a deployment; each problem is a line that names the missing thing.

A deployment that fails half-way takes a quarter of an hour and leaves a stack to remove. These
problems can be found before: on the machine, in the parameters, and in the account.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cirrusmq_local.cloud.cloudformation import Intrinsic, StackTemplate, read
from cirrusmq_local.commands.quotas import KEY_WRITES

PYTHON = "python3.13"
"""The functions' Python, with which `sam build` builds them."""
SAM = ".venv-sam/bin/sam"
UNRESERVED = 100
"""Executions that Lambda keeps for functions without reserved concurrency (Lambda quotas)."""
ENVIRONMENT_BYTES = 4_096
"""Maximum size of a function's variables, names and values together (Lambda quotas)."""
BODIES = "BodiesInS3From"
TABLES = ("ExistingDirectoryTable", "ExistingMessagesTable", "ExistingUsageTable")
AT_ONCE = "AllAtOnce"
GONE = "REVIEW_IN_PROGRESS"
"""Status of a stack that has a change set but was never created."""
FUNCTION = "AWS::Serverless::Function"
_UNIT_PARAMETERS = (
    *("WarmReadUnits", "WarmWriteUnits", "StreamConcurrency", "Capacity"),
    *("DirectoryUnits", "MessagesUnits", "UsageUnits"),
)
_NAME_BYTES = 128
"""Assumed size of a name or ARN that only the deployment defines."""
_TO_REMOVE = {"CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED"}


class Stack(NamedTuple):
    """A stack as CloudFormation describes it."""

    status: str
    parameters: Mapping[str, str]


class Concurrency(NamedTuple):
    """Executions of Lambda's functions in this account and region."""

    limit: int
    """Maximum concurrent executions."""
    unreserved: int
    """Executions that no function has reserved."""


class TableUnits(NamedTuple):
    """Maximum units per second of a table in this account and region."""

    reads: int
    writes: int


def read_stack(session: boto3.session.Session, name: str) -> Stack | None:
    """Returns the stack of this name, or None if it does not exist."""
    try:
        (found,) = session.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    held = {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", [])}
    return None if found["StackStatus"] == GONE else Stack(found["StackStatus"], held)


def read_concurrency(session: boto3.session.Session) -> Concurrency:
    """Returns the account's executions."""
    told = session.client("lambda").get_account_settings()["AccountLimit"]
    return Concurrency(told["ConcurrentExecutions"], told["UnreservedConcurrentExecutions"])


def read_table_units(session: boto3.session.Session) -> TableUnits:
    """Returns DynamoDB's quotas for a table."""
    told = session.client("dynamodb").describe_limits()
    return TableUnits(told["TableMaxReadCapacityUnits"], told["TableMaxWriteCapacityUnits"])


def missing_here(root: Path) -> Iterator[str]:
    """Yields tools that this machine lacks."""
    if shutil.which(PYTHON) is None:
        yield (
            f"{PYTHON} is not on the path: functions are built with the Python that they run on;"
            " install it, or put its folder on PATH"
        )
    if not (root / SAM).exists():
        yield f"{SAM} is missing: make deploy-tools"


def wrong_parameters(template: StackTemplate) -> Iterator[str]:
    """Yields parameters that Lambda would refuse in the middle of the deployment."""
    stacks = [stack for stack in template.stacks() if stack.made]
    made = {name for stack in stacks for name in stack.document["Resources"]}
    for stack in stacks:
        for logical_id, environment in _environments(stack):
            size = sum(len(key) + _bytes(value, made) for key, value in environment.items())
            if size > ENVIRONMENT_BYTES:
                yield (
                    f"InvokeFunctions: the environment of {logical_id} would have {size:,} bytes,"
                    f" of {ENVIRONMENT_BYTES:,} that Lambda takes: name fewer functions"
                )


def wrong_stack(stack: Stack | None, name: str, parameters: Mapping[str, str]) -> Iterator[str]:
    """Yields problems with the existing stack."""
    if stack is None:
        return
    if stack.status.endswith("_IN_PROGRESS"):
        yield f"{name} is {stack.status}: wait until that is over"
    elif stack.status == "UPDATE_ROLLBACK_FAILED":
        yield (
            f"{name} is UPDATE_ROLLBACK_FAILED: aws cloudformation continue-update-rollback"
            f" --stack-name {name}"
        )
    elif stack.status in _TO_REMOVE:
        yield f"{name} is {stack.status}: python -m infra.remove {name}"
    changed = [
        name
        for name in TABLES
        if name in parameters and parameters[name] != stack.parameters.get(name, "")
    ]
    if changed and {**stack.parameters, **parameters}.get("Rollout") != AT_ONCE:
        yield (
            f"{changed[0]} changes: give Rollout={AT_ONCE}, else a rollout by and by sends most"
            " calls to the old tables"
        )
    if BODIES not in stack.parameters and parameters.get(BODIES) != "0":
        yield (
            f"{BODIES}=0 comes first: functions of the release that {name} has now cannot read what"
            " this one writes there; with the next deployment give another number"
        )


def wrong_concurrency(
    template: StackTemplate, stack: Stack | None, account: Concurrency
) -> Iterator[str]:
    """Yields a problem if the account has too little concurrency for the reservations."""
    needed = reserved(template)
    # An existing stack's reservations are not in `unreserved`, so the whole limit is used.
    room = max(0, (account.unreserved if stack is None else account.limit) - UNRESERVED)
    if needed > room:
        yield (
            f"the account lets {room} executions be reserved, of {account.limit}, and this"
            f" deployment reserves {needed}: give StreamConcurrency=0 PushConcurrency=0"
            " SweepConcurrency=0, or ask for more (Service Quotas, Concurrent executions)"
        )


def wrong_units(template: StackTemplate, tables: TableUnits) -> Iterator[str]:
    """Yields problems with tables' units above the quotas, and with a stream read too slowly.

    A table of N write units has N / 1,000 shards; each needs one execution of each reader.
    """
    given = {
        name: template.resolve(Intrinsic(function="Ref", argument=name))
        for name in _UNIT_PARAMETERS
    }
    asked = [("WarmReadUnits", int(given["WarmReadUnits"]), tables.reads)]
    asked.append(("WarmWriteUnits", int(given["WarmWriteUnits"]), tables.writes))
    if given["Capacity"] == "provisioned":
        for name in ("DirectoryUnits", "MessagesUnits", "UsageUnits"):
            _, reads, _, writes, _ = map(int, given[name].split(","))
            asked += [(name, reads, tables.reads), (name, writes, tables.writes)]
    for name, units, quota in asked:
        if units > quota:
            yield (
                f"{name}: {units:,} units a second are more than the {quota:,} that the account"
                " lets a table have: ask for more (Service Quotas, DynamoDB)"
            )
    shards = -(-int(given["WarmWriteUnits"]) // KEY_WRITES)
    readers = int(given["StreamConcurrency"])
    if 0 < readers < shards:
        yield (
            f"StreamConcurrency: {readers} executions read {readers} shards of the stream at once,"
            f" and WarmWriteUnits make {shards}: give 0 or at least {shards}"
        )


def reserved(template: StackTemplate) -> int:
    """Returns the executions that a deployment reserves for all its functions."""
    total = 0
    for stack in template.stacks():
        for resource in stack.document["Resources"].values():
            if stack.made and resource["Type"] == FUNCTION:
                held = stack.resolve(resource["Properties"].get("ReservedConcurrentExecutions"))
                total += int(held or 0)
    return total


def find_problems(
    root: Path, name: str, parameters: Mapping[str, str], session: boto3.session.Session
) -> tuple[list[str], Stack | None]:
    """Returns all problems, a line for each, and the stack, or None if it is new."""
    here = list(missing_here(root))
    try:
        stack, account = read_stack(session, name), read_concurrency(session)
        tables = read_table_units(session)
    except (BotoCoreError, ClientError) as error:
        names = "name both as in: -- --region eu-central-1 --profile ops"
        return [*here, f"the account cannot be asked: {error} ({names})"], None
    template = _template(root, name, parameters, stack)
    return [
        *here,
        *wrong_stack(stack, name, parameters),
        *wrong_parameters(template),
        *wrong_concurrency(template, stack, account),
        *wrong_units(template, tables),
    ], stack


def _template(
    root: Path, name: str, parameters: Mapping[str, str], stack: Stack | None
) -> StackTemplate:
    """Returns the template with the deployment's parameters; others keep the stack's values."""
    path = root / "template.yaml"
    known = read(path)["Parameters"]
    kept = stack.parameters if stack is not None else {}
    given = {key: value for key, value in {**kept, **parameters}.items() if key in known}
    return StackTemplate(path, name, "local", given)


def _environments(stack: StackTemplate) -> Iterator[tuple[str, dict[str, Any]]]:
    common = stack.document.get("Globals", {}).get("Function", {})
    for logical_id, resource in stack.document["Resources"].items():
        if resource["Type"] != FUNCTION:
            continue
        held: dict[str, Any] = {}
        for part in (common, resource["Properties"]):
            held |= stack.resolve(part.get("Environment", {}).get("Variables", {}))
        yield logical_id, held


def _bytes(value: Any, made: Set[str]) -> int:
    """Returns the bytes of a value; a name by the deployment is a logical id here."""
    text = str(value)
    given_there = text.partition(".")[0] in made
    return max(_NAME_BYTES, len(text)) if given_there else len(text.encode())
