"""The parts of `template.yaml` and its nested templates for one machine: functions, tables, …"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from cirrusmq_local.cloud.cloudformation import ACCOUNT_ID, StackTemplate, TemplateError
from cirrusmq_local.cloud.permissions import Permissions, allowed

_HERE = Path(__file__).resolve()
_REPOSITORY, _INSTALLED = _HERE.parents[3], _HERE.parents[2] / "cirrusmq_service"
ROOT = _REPOSITORY if (_REPOSITORY / "template.yaml").is_file() else _INSTALLED
"""The folder of the template and its files; a wheel has it beside the packages."""
TEMPLATE = ROOT / "template.yaml"
STACK_NAME = "cirrusmq"
API, DIALECT_API = "Api", "DialectApi"
"""The HTTP API, and the one for the SDKs of other services, by their names in the templates."""
ALL_DIALECTS = "aliyun,cmq,emq,sns,sqs"
"""The value of the parameter `Dialects` for all services."""
REGION = "local"

_RATE = re.compile(r"rate\((\d+) (second|minute|hour|day)s?\)")
_RATE_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}


@dataclass(frozen=True, kw_only=True)
class Function:
    """A Lambda function."""

    name: str
    """The name for invocations."""
    folder: Path
    """The folder of its code."""
    handler: str
    """`module.function`; the module is a file in the folder."""
    timeout_seconds: int
    memory_mb: int
    environment: Mapping[str, str]
    logical_id: str = ""
    """Its name in the template."""
    permissions: Permissions = field(default_factory=dict)
    """The permissions from the function's own policies."""
    reserved: int | None = None
    """Reserved concurrency, or None if the function has no limit."""
    may_loop: bool = False
    """True if Lambda lets the function invoke itself without end."""

    @property
    def arn(self) -> str:
        """The function's ARN."""
        return f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{self.name}"

    def may(self, action: str, *targets: str, partition: str = "") -> bool:
        """Returns True if the policies allow an action on a resource, by any of its names.

        A function of the stack or of a test, which is in no template, may do anything.
        """
        if not self.permissions:
            return not self.logical_id
        return any(
            partition.startswith(self.permissions.get(target, {}).get(action, ()))
            for target in targets
        )


@dataclass(frozen=True, kw_only=True)
class Route:
    """A method and path of an HTTP API, or `$default` (method and path empty)."""

    function: str
    method: str
    path: str
    api: str = API

    @property
    def key(self) -> str:
        """The route's key in an event: `GET /queues/{queue}`."""
        return f"{self.method} {self.path}" if self.method else "$default"


@dataclass(frozen=True, kw_only=True)
class StreamSource:
    """A function's reading of a table's stream."""

    function: str
    table: str
    filters: Sequence[Mapping[str, Any]]
    """The function gets a record if any of these patterns matches it."""
    batch_size: int
    window_seconds: int
    """Maximum time that a batch waits for more records; 0 for none."""
    retries: int
    max_age_seconds: int
    bisect: bool
    """True if a failed batch is halved before its retry."""
    reports_failures: bool
    """True if the function's answer has `batchItemFailures`."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A function that runs again and again."""

    function: str
    seconds: int


@dataclass(frozen=True, kw_only=True)
class StateMachine:
    """A state machine of Step Functions."""

    logical_id: str
    arn: str
    definition: str
    """In the Amazon States Language, with its substitutions done."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A DynamoDB table."""

    name: str
    partition_key: str
    sort_key: str
    ttl_attribute: str
    stream: bool


@dataclass(frozen=True, kw_only=True)
class LifecycleRule:
    """A rule that expires objects of a bucket by their age."""

    prefix: str
    """Prefix of the keys to which the rule applies."""
    days: int


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A bucket of S3."""

    name: str
    rules: Sequence[LifecycleRule]
    """Rules that expire objects; one machine has no versions and no multipart uploads."""
    key: str
    """Name, in permissions, of the KMS key that encrypts the bucket; empty for S3's own key."""


@dataclass(frozen=True, kw_only=True)
class Template:
    """The parts of the deployment that run on one machine."""

    functions: Sequence[Function]
    routes: Sequence[Route]
    streams: Sequence[StreamSource]
    schedules: Sequence[Schedule]
    machines: Sequence[StateMachine]
    tables: Sequence[Table]
    buckets: Sequence[Bucket] = ()
    urls: Sequence[str] = ()
    """Names of the functions with their own URL beside the API."""

    def routes_of(self, api: str) -> list[Route]:
        """Returns the routes of one API."""
        return [route for route in self.routes if route.api == api]

    def environment(self) -> dict[str, str]:
        """Returns the variables of all functions, which share one process here."""
        together: dict[str, str] = {}
        for function in self.functions:
            for name, value in function.environment.items():
                if together.setdefault(name, value) != value:
                    raise TemplateError(
                        f"{name} differs between functions: one process cannot run them all"
                    )
        return together


def load(path: Path, given: Mapping[str, Any] | None = None) -> Template:
    """Reads the template and its nested templates; each path is relative to its template.

    `given`: values of parameters; the other parameters have their defaults.
    """
    stacks = list(StackTemplate(path, STACK_NAME, REGION, given).stacks())
    _require_one_of_each(stacks)
    made = [stack for stack in stacks if stack.made]
    named = {name: text for stack in made for name, text in _named_policies(stack)}
    parts = [_read(_Reader(stack, named)) for stack in made]
    return Template(
        **{
            held.name: [each for part in parts for each in getattr(part, held.name)]
            for held in fields(Template)
        }
    )


def _named_policies(stack: StackTemplate) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields logical id and document of each managed policy of a stack."""
    for name, resource in stack.document["Resources"].items():
        properties = resource.get("Properties") or {}
        if resource.get("Type") == "AWS::IAM::ManagedPolicy" and properties:
            yield name, stack.resolve(properties["PolicyDocument"])


def _read(reader: _Reader) -> Template:
    """Returns the parts of one stack, without its nested applications."""
    found = dict(reader.resources("AWS::Serverless::Function"))
    return Template(
        functions=[reader.function(name, held) for name, held in found.items()],
        routes=[route for held in found.values() for route in reader.routes(held)],
        streams=[
            reader.stream(held) for _, held in reader.resources("AWS::Lambda::EventSourceMapping")
        ],
        schedules=[each for held in found.values() for each in reader.schedules(held)],
        machines=[
            reader.machine(name, held)
            for name, held in reader.resources("AWS::Serverless::StateMachine")
        ],
        tables=[
            reader.table(name, held) for name, held in reader.resources("AWS::DynamoDB::Table")
        ],
        buckets=[reader.bucket(name, held) for name, held in reader.resources("AWS::S3::Bucket")],
        urls=[reader.target(held) for _, held in reader.resources("AWS::Lambda::Url")],
    )


def _require_one_of_each(stacks: Sequence[StackTemplate]) -> None:
    """Raises TemplateError if two stacks use a logical id, by which permissions name resources."""
    counts = Counter(name for stack in stacks for name in stack.document["Resources"])
    for name, count in counts.items():
        if count > 1:
            raise TemplateError(f"{name} is a resource of {count} templates: rename one")


class _Reader:
    """Turns resources of one stack into the records above."""

    def __init__(self, stack: StackTemplate, policies: Mapping[str, Any]) -> None:
        self._stack = stack
        self._policies = policies
        globals_ = stack.document.get("Globals") or {}
        self._shared: Mapping[str, Any] = globals_.get("Function") or {}

    def resources(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields logical id and properties of each resource of a type."""
        for name, resource in self._stack.document["Resources"].items():
            is_made = "Condition" not in resource or self._stack.holds(resource["Condition"])
            if resource.get("Type") == kind and is_made:
                yield name, {"FunctionName": name} | (resource.get("Properties") or {})

    def function(self, logical_id: str, properties: Mapping[str, Any]) -> Function:
        merged = {**self._shared, **properties}
        variables: dict[str, Any] = {}
        for holder in (self._shared, properties):
            variables |= (holder.get("Environment") or {}).get("Variables") or {}
        return Function(
            name=self._name(properties),
            logical_id=logical_id,
            folder=self._stack.path.parent / self._stack.resolve(merged["CodeUri"]),
            handler=merged["Handler"],
            timeout_seconds=int(merged.get("Timeout", 3)),
            memory_mb=int(self._stack.resolve(merged.get("MemorySize", 128))),
            environment={
                name: str(self._stack.resolve(value)) for name, value in variables.items()
            },
            permissions=allowed(
                self._stack.resolve(properties.get("Policies") or []), self._policies
            ),
            reserved=_optional_int(self._stack.resolve(merged.get("ReservedConcurrentExecutions"))),
            may_loop=merged.get("RecursiveLoop") == "Allow",
        )

    def routes(self, properties: Mapping[str, Any]) -> Iterator[Route]:
        for event in self._events(properties, "HttpApi"):
            yield Route(
                function=self._name(properties),
                method=str(event.get("Method", "")).upper(),
                path=str(event.get("Path", "")),
                api=str(event.get("ApiId", API)),
            )

    def stream(self, properties: Mapping[str, Any]) -> StreamSource:
        mapping = self._stack.resolve(properties)
        patterns = (mapping.get("FilterCriteria") or {}).get("Filters") or []
        return StreamSource(
            function=mapping["FunctionName"],
            table=mapping["EventSourceArn"].removesuffix(".StreamArn"),
            filters=[json.loads(held["Pattern"]) for held in patterns],
            batch_size=int(mapping.get("BatchSize", 100)),
            window_seconds=int(mapping.get("MaximumBatchingWindowInSeconds", 0)),
            retries=int(mapping.get("MaximumRetryAttempts", -1)),
            max_age_seconds=int(mapping.get("MaximumRecordAgeInSeconds", -1)),
            bisect=bool(mapping.get("BisectBatchOnFunctionError", False)),
            reports_failures="ReportBatchItemFailures"
            in (mapping.get("FunctionResponseTypes") or []),
        )

    def schedules(self, properties: Mapping[str, Any]) -> Iterator[Schedule]:
        for event in self._events(properties, "Schedule"):
            rate = _RATE.fullmatch(event["Schedule"])
            if rate is None:
                raise TemplateError(f"{event['Schedule']} is not understood: use rate(…)")
            count, unit = rate.groups()
            yield Schedule(
                function=self._name(properties), seconds=int(count) * _RATE_SECONDS[unit]
            )

    def machine(self, logical_id: str, properties: Mapping[str, Any]) -> StateMachine:
        name = self._stack.resolve(properties.get("Name", logical_id))
        path = self._stack.path.parent / properties["DefinitionUri"]
        substitutions = self._stack.resolve(properties.get("DefinitionSubstitutions") or {})
        definition = path.read_text(encoding="utf-8")
        for placeholder, value in substitutions.items():
            definition = definition.replace("${" + placeholder + "}", str(value))
        arn = f"arn:aws:states:{REGION}:{ACCOUNT_ID}:stateMachine:{name}"
        return StateMachine(logical_id=logical_id, arn=arn, definition=definition)

    def table(self, logical_id: str, properties: Mapping[str, Any]) -> Table:
        keys = {held["KeyType"]: held["AttributeName"] for held in properties["KeySchema"]}
        return Table(
            name=self._stack.resolve(properties.get("TableName", logical_id)),
            partition_key=keys["HASH"],
            sort_key=keys["RANGE"],
            ttl_attribute=properties["TimeToLiveSpecification"]["AttributeName"],
            stream="StreamSpecification" in properties,
        )

    def bucket(self, logical_id: str, properties: Mapping[str, Any]) -> Bucket:
        rules = (properties.get("LifecycleConfiguration") or {}).get("Rules") or []
        encryption = properties.get("BucketEncryption") or {}
        by_default = [
            held["ServerSideEncryptionByDefault"]
            for held in self._stack.resolve(
                encryption.get("ServerSideEncryptionConfiguration") or []
            )
        ]
        return Bucket(
            name=self._stack.resolve(properties.get("BucketName", logical_id)),
            rules=[
                LifecycleRule(prefix=held.get("Prefix", ""), days=int(held["ExpirationInDays"]))
                for held in self._stack.resolve(rules)
                if "ExpirationInDays" in held and held["Status"] == "Enabled"
            ],
            key=str(by_default[0].get("KMSMasterKeyID", "")) if by_default else "",
        )

    def target(self, properties: Mapping[str, Any]) -> str:
        """Returns the name of a URL's function."""
        return str(self._stack.resolve(properties["TargetFunctionArn"]))

    def _name(self, properties: Mapping[str, Any]) -> str:
        return str(self._stack.resolve(properties["FunctionName"]))

    def _events(self, properties: Mapping[str, Any], kind: str) -> Iterator[dict[str, Any]]:
        for event in (properties.get("Events") or {}).values():
            if event["Type"] == kind:
                yield self._stack.resolve(event.get("Properties") or {})


def _optional_int(value: Any) -> int | None:
    return None if value is None else int(value)
