"""A CloudFormation template as values: its tags read, its references resolved for one machine.

Only what a SAM template of this project uses is understood; anything else raises TemplateError
where its value is needed, so that the local stack never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ACCOUNT_ID = "000000000000"
_PLACEHOLDER = re.compile(r"\$\{(!?)([^}]+)\}")


class TemplateError(Exception):
    """The template holds something that the stack on one machine does not understand."""


@dataclass(frozen=True, kw_only=True)
class Intrinsic:
    """A tag such as `!Ref Name`, not resolved yet."""

    function: str
    argument: Any


class _Loader(yaml.SafeLoader):
    """Reads the short form of CloudFormation's functions."""


def _intrinsic(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Intrinsic:
    if isinstance(node, yaml.ScalarNode):
        return Intrinsic(function=suffix, argument=loader.construct_scalar(node))
    if isinstance(node, yaml.SequenceNode):
        return Intrinsic(function=suffix, argument=loader.construct_sequence(node, deep=True))
    assert isinstance(node, yaml.MappingNode)
    return Intrinsic(function=suffix, argument=loader.construct_mapping(node, deep=True))


_Loader.add_multi_constructor("!", _intrinsic)


def read(path: Path) -> dict[str, Any]:
    """The template's document, with an `Intrinsic` in the place of a tag."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise TemplateError(f"cannot read {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise TemplateError(f"{path} is not YAML: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("Resources"), dict):
        raise TemplateError(f"{path} has no Resources")
    return document


class Resolver:
    """Resolves references with the defaults of the parameters.

    A reference to a resource is its name if the template gives it one, else its logical id; an
    attribute of a resource is `<logical id>.<attribute>`.
    """

    NAME_PROPERTIES = ("FunctionName", "TableName", "QueueName")

    def __init__(self, document: Mapping[str, Any], stack_name: str, region: str) -> None:
        self._resources: Mapping[str, Any] = document["Resources"]
        self._conditions: Mapping[str, Any] = document.get("Conditions") or {}
        self._values: dict[str, Any] = {
            name: parameter.get("Default")
            for name, parameter in (document.get("Parameters") or {}).items()
        }
        self._values |= {
            "AWS::StackName": stack_name,
            "AWS::Region": region,
            "AWS::AccountId": ACCOUNT_ID,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "localhost",
        }

    def resolve(self, value: Any) -> Any:
        """The value with every function in it replaced by its result."""
        match value:
            case Intrinsic():
                return self._apply(value)
            case dict():
                return {name: self.resolve(held) for name, held in value.items()}
            case list():
                return [self.resolve(held) for held in value]
        return value

    def _apply(self, intrinsic: Intrinsic) -> Any:
        argument = intrinsic.argument
        match intrinsic.function:
            case "Ref":
                return self._reference(argument)
            case "GetAtt":
                name = argument if isinstance(argument, str) else ".".join(argument)
                self._require_resource(name.split(".")[0])
                return name
            case "Sub":
                return self._substitute(argument)
            case "Join":
                separator, parts = argument
                return separator.join(str(self.resolve(part)) for part in parts)
            case "If":
                name, then, otherwise = argument
                return self.resolve(then if self._holds(name) else otherwise)
            case "Equals":
                first, second = self.resolve(argument)
                return first == second
            case "Not":
                (condition,) = argument
                return not self.resolve(condition)
        raise TemplateError(f"!{intrinsic.function} is not understood on one machine")

    def _holds(self, condition: str) -> bool:
        if condition not in self._conditions:
            raise TemplateError(f"the template has no condition {condition}")
        return bool(self.resolve(self._conditions[condition]))

    def _reference(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        properties = self._require_resource(name).get("Properties") or {}
        for named in self.NAME_PROPERTIES:
            if named in properties:
                return self.resolve(properties[named])
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
