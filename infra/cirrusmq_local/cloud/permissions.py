"""The permissions of a function, from the policies in its template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from cirrusmq_local.cloud.cloudformation import TemplateError

Permissions: TypeAlias = Mapping[str, Mapping[str, frozenset[str]]]
"""Resource (`Messages.Arn`) -> action -> beginnings of the partition keys it may touch."""


def allowed(policies: Sequence[Any]) -> Permissions:
    """The permissions of inline policies; a policy that is only named adds none."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for policy in policies:
        for statement in policy["Statement"] if isinstance(policy, dict) else ():
            for target in _as_list(statement["Resource"]):
                for action in _as_list(statement["Action"]):
                    actions = found.setdefault(target, {})
                    actions[action] = actions.get(action, frozenset()) | _keys(statement)
    return found


def _keys(statement: Mapping[str, Any]) -> frozenset[str]:
    """Beginnings of the partition keys that a statement allows."""
    if "Condition" not in statement:
        return frozenset({""})
    match statement["Condition"]:
        case {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [*patterns]}}:
            return frozenset(str(pattern).removesuffix("*") for pattern in patterns)
    raise TemplateError(f"the condition of {statement.get('Sid')} is not understood")


def _as_list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
