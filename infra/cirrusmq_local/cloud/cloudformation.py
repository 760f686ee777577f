"""A CloudFormation template as values: its tags read, its references resolved for one machine.

Only the parts that this project's SAM templates use are understood. Anything else raises
TemplateError when its value is needed, so that the local stack never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

try:  # libyaml: a tenth of the time of the parser in Python, which is there without it
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]

ACCOUNT_ID = "000000000000"
APPLICATION = "AWS::Serverless::Application"
_PLACEHOLDER = re.compile(r"\$\{(!?)([^}]+)\}")


class TemplateError(Exception):
    """The template holds something that the stack on one machine does not understand."""


@dataclass(frozen=True, kw_only=True)
class Intrinsic:
    """A tag such as `!Ref Name`, not resolved yet."""

    function: str
    argument: Any


class _Loader(SafeLoader):
    """Reads the short form of CloudFormation's functions."""


def _intrinsic(loader: SafeLoader, suffix: str, node: yaml.Node) -> Intrinsic:
    if isinstance(node, yaml.ScalarNode):
        return Intrinsic(function=suffix, argument=loader.construct_scalar(node))
    if isinstance(node, yaml.SequenceNode):
        return Intrinsic(function=suffix, argument=loader.construct_sequence(node, deep=True))
    assert isinstance(node, yaml.MappingNode)
    return Intrinsic(function=suffix, argument=loader.construct_mapping(node, deep=True))


_Loader.add_multi_constructor("!", _intrinsic)


def read(path: Path) -> dict[str, Any]:
    """Returns the template's document, with an `Intrinsic` in the place of a tag."""
    try:
        document = _parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TemplateError(f"cannot read {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise TemplateError(f"{path} is not YAML: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("Resources"), dict):
        raise TemplateError(f"{path} has no Resources")
    return document


def _parsed(text: str) -> Any:
    return yaml.load(text, _Loader)


class StackTemplate:
    """A template with its references resolved, and the applications that are nested in it.

    A property that is `AWS::NoValue` is left out.

    A reference to a resource is its name if the template gives it one, else its logical id; one to
    a function's alias or version (`<logical id>.Alias`, which SAM makes) is the function, which has
    one version here; one to another resource that SAM makes is its logical id. An attribute is
    `<logical id>.<attribute>`; an output of a nested application is the output's value. A parameter
    has the value that the stack above passes, else its default.
    """

    NAME_PROPERTIES = ("FunctionName", "TableName", "QueueName")
    MADE_BY_SAM = ("ServerlessDeploymentApplication",)

    def __init__(
        self, path: Path, name: str, region: str, given: Mapping[str, Any] | None = None
    ) -> None:
        self.path = path
        self.document = read(path)
        self.made = True
        """False for a nested stack whose condition does not hold."""
        self._name = name
        self._region = region
        self._resources: Mapping[str, Any] = self.document["Resources"]
        self._conditions: Mapping[str, Any] = self.document.get("Conditions") or {}
        self._nested: dict[str, StackTemplate | None] = {}
        self._values = self._parameters(given or {}) | {
            "AWS::StackName": name,
            "AWS::Region": region,
            "AWS::AccountId": ACCOUNT_ID,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "localhost",
            "AWS::NoValue": None,
        }

    def _parameters(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the parameters' values. Raises TemplateError if one is missing or unknown."""
        declared = self.document.get("Parameters") or {}
        defaults = {
            name: parameter["Default"]
            for name, parameter in declared.items()
            if "Default" in parameter
        }
        values = defaults | dict(given)
        for name, parameter in declared.items():
            if parameter.get("Type") == "CommaDelimitedList" and isinstance(values.get(name), str):
                values[name] = [part for part in values[name].split(",") if part]
        for name in sorted(values.keys() ^ declared.keys()):
            lacks = "no value for its" if name in declared else "no"
            raise TemplateError(f"{self.path} has {lacks} parameter {name}")
        return values

    def stacks(self) -> Iterator[StackTemplate]:
        """Yields this stack, then the nested stacks at any depth."""
        yield self
        for logical_id, resource in self._resources.items():
            if resource.get("Type") == APPLICATION:
                yield from self._application(logical_id).stacks()

    def _application(self, logical_id: str) -> StackTemplate:
        """Returns the stack of a nested application."""
        if logical_id not in self._nested:
            self._nested[logical_id] = None
            resource = self._require_resource(logical_id)
            properties = resource["Properties"]
            made = StackTemplate(
                self.path.parent / str(properties["Location"]),
                f"{self._name}-{logical_id}",
                self._region,
                self.resolve(properties.get("Parameters") or {}),
            )
            made.made = self.made and (
                "Condition" not in resource or self.holds(resource["Condition"])
            )
            self._nested[logical_id] = made
        stack = self._nested[logical_id]
        if stack is None:
            raise TemplateError(f"a parameter of {logical_id} depends on its own output")
        return stack

    def _output(self, attribute: str) -> Any:
        """Returns the value of `Outputs.<name>`, for the stack above."""
        kind, _, name = attribute.partition(".")
        outputs = self.document.get("Outputs") or {}
        if kind != "Outputs" or name not in outputs:
            raise TemplateError(f"{self.path} has no output for {attribute}")
        return self.resolve(outputs[name]["Value"])

    def resolve(self, value: Any) -> Any:
        """Returns the value with every function in it replaced by its result."""
        match value:
            case Intrinsic():
                return self._apply(value)
            case dict():
                resolved = {name: self.resolve(held) for name, held in value.items()}
                return {name: held for name, held in resolved.items() if held is not None}
            case list():
                return [held for held in map(self.resolve, value) if held is not None]
        return value

    def _apply(self, intrinsic: Intrinsic) -> Any:
        argument = intrinsic.argument
        match intrinsic.function:
            case "Ref":
                return self._reference(argument)
            case "GetAtt":
                return self._attribute(argument)
            case "Sub":
                return self._substitute(argument)
            case "Join":
                separator, parts = argument
                return separator.join(str(part) for part in self.resolve(parts))
            case "Select":
                number, held = argument
                return self.resolve(held)[int(number)]
            case "If":
                name, then, otherwise = argument
                return self.resolve(then if self.holds(name) else otherwise)
            case "Condition":
                return self.holds(argument)
            case "Equals":
                # As texts: a parameter may be given as one, and a number is written without quotes.
                first, second = map(_as_text, self.resolve(argument))
                return first == second
            case "Not":
                (condition,) = argument
                return not self.resolve(condition)
            case "And":
                return all(self.resolve(argument))
            case "Or":
                return any(self.resolve(argument))
        raise TemplateError(f"!{intrinsic.function} is not understood on one machine")

    def holds(self, condition: str) -> bool:
        """Returns True if a condition of the template holds with its parameters."""
        if condition not in self._conditions:
            raise TemplateError(f"the template has no condition {condition}")
        return bool(self.resolve(self._conditions[condition]))

    def _reference(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        if name in self.MADE_BY_SAM:
            return name
        name = name.removesuffix(".Alias").removesuffix(".Version")
        properties = self._require_resource(name).get("Properties") or {}
        for named in self.NAME_PROPERTIES:
            if named in properties:
                return self.resolve(properties[named])
        return name

    def _attribute(self, argument: str | list[str]) -> Any:
        name = argument if isinstance(argument, str) else ".".join(argument)
        logical_id, _, attribute = name.partition(".")
        if self._require_resource(logical_id).get("Type") == APPLICATION:
            return self._application(logical_id)._output(attribute)
        return name

    def _require_resource(self, name: str) -> Mapping[str, Any]:
        if name not in self._resources:
            raise TemplateError(f"the template refers to {name}, which it does not define")
        resource: Mapping[str, Any] = self._resources[name]
        return resource

    def _substitute(self, argument: Any) -> str:
        text, own = (argument, {}) if isinstance(argument, str) else argument

        def replaced(match: re.Match[str]) -> str:
            literal, name = match.groups()
            if literal:
                return "${" + name + "}"
            if name in own:
                return str(self.resolve(own[name]))
            function = "GetAtt" if "." in name else "Ref"
            return str(self._apply(Intrinsic(function=function, argument=name)))

        return _PLACEHOLDER.sub(replaced, text)


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
