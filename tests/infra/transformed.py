"""A transformed template as CloudFormation reads it: with parameters, a stack name, a partition."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cirrusmq_local.cloud.cloudformation import read

ABSENT = object()
"""The place of `AWS::NoValue`."""
_PLACEHOLDER = re.compile(r"\$\{([^!}][^}]*)\}")
_PARTITIONS = {"aws": "eu-central-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}
"""A region of each partition."""


def transformed_of(transformed: list[Path], folder: str = "", **given: Any) -> Transformed:
    """A template of the deployment with these parameters; of the folder, or the one above all."""
    return Transformed(path_of(transformed, folder), given)


def path_of(transformed: list[Path], folder: str) -> Path:
    """The transformed template of a folder of `infra`, or the one above all."""
    (path,) = (
        (each for each in transformed[1:] if each.parent.name == folder)
        if folder
        else (transformed[:1])
    )
    return path


class Transformed:
    """The resources of a transformed template, resolved.

    A reference to a resource is its logical id, an attribute `<logical id>.<attribute>`.
    """

    def __init__(
        self,
        path: Path,
        given: Mapping[str, object] | None = None,
        *,
        stack: str = "cirrusmq",
        partition: str = "aws",
    ) -> None:
        self.document = read(path)
        defaults = {
            name: held.get("Default", "") for name, held in self.document["Parameters"].items()
        }
        self._names: dict[str, Any] = {
            **defaults,
            **(given or {}),
            "AWS::StackName": stack,
            "AWS::Partition": partition,
            "AWS::Region": _PARTITIONS[partition],
            "AWS::AccountId": "123456789012",
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::NoValue": ABSENT,
        }

    def resources(self, kind: str) -> dict[str, Any]:
        """The properties of the resources of a type, by logical id; those that are made."""
        return {
            name: self.resolve(held["Properties"])
            for name, held in self.document["Resources"].items()
            if held["Type"] == kind and self.holds(held.get("Condition"))
        }

    def holds(self, condition: str | None) -> bool:
        """Whether a condition holds; that of a resource without one does."""
        return condition is None or self.true(self.document["Conditions"][condition])

    def resolve(self, value: Any) -> Any:
        """The value with its functions applied."""
        match value:
            case {"Ref": name, **rest} if not rest:
                return self._names.get(name, name)
            case {"Fn::GetAtt": [str(name), attribute], **rest} if not rest:
                return f"{name}.{attribute}"
            case {"Fn::If": [condition, yes, no], **rest} if not rest:
                return self.resolve(yes if self.holds(condition) else no)
            case {"Fn::Sub": given, **rest} if not rest:
                text, own = (given, {}) if isinstance(given, str) else given
                return self._substitute(text, {k: self.resolve(v) for k, v in own.items()})
            case {"Fn::Join": [between, parts], **rest} if not rest:
                held = self.resolve(parts)
                return between.join(map(str, held)) if isinstance(held, list) else held
            case dict():
                held = {key: self.resolve(each) for key, each in value.items()}
                return {key: each for key, each in held.items() if each is not ABSENT}
            case list():
                return [each for each in map(self.resolve, value) if each is not ABSENT]
        return value

    def _substitute(self, text: str, own: Mapping[str, Any]) -> str:
        names = {**self._names, **own}
        return _PLACEHOLDER.sub(lambda found: str(names.get(found[1], found[1])), text)

    def true(self, value: Any) -> bool:
        """Whether a condition, as it is written, holds."""
        match value:
            case {"Condition": name}:
                return self.holds(name)
            case {"Fn::Equals": [one, other]}:
                return str(self.resolve(one)) == str(self.resolve(other))
            case {"Fn::Not": [one]}:
                return not self.true(one)
            case {"Fn::And": all_of}:
                return all(map(self.true, all_of))
            case {"Fn::Or": any_of}:
                return any(map(self.true, any_of))
        raise AssertionError(f"no condition: {value}")
