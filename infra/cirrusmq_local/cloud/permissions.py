"""The permissions of a function, from the policies in its template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from cirrusmq_local.cloud.cloudformation import TemplateError

Permissions: TypeAlias = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Resource (`Messages.Arn`) -> action -> values to which the action is confined.

For a table, the values are prefixes of partition keys. For a key of KMS, they are services that use
it for a role, and prefixes of the ids of signing keys whose secrets it encrypts.
"""


def allowed(policies: Sequence[Any], named: Mapping[str, Any]) -> Permissions:
    """Returns the permissions of inline policies and of named ones. `named`: their documents."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for policy in policies:
        document = policy if isinstance(policy, dict) else named.get(policy, {"Statement": ()})
        for statement in document["Statement"]:
            for target in _as_list(statement["Resource"]):
                for action in _as_list(statement["Action"]):
                    actions = found.setdefault(target, {})
                    actions[action] = actions.get(action, frozenset()) | _keys(statement)
    return {
        target: {action: tuple(sorted(keys)) for action, keys in actions.items()}
        for target, actions in found.items()
    }


def _keys(statement: Mapping[str, Any]) -> frozenset[str]:
    """Returns the prefixes to which a statement confines its actions; "" if it does not."""
    if "Condition" not in statement:
        return frozenset({""})
    match statement["Condition"]:
        case {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [*patterns]}}:
            return frozenset(str(pattern).removesuffix("*") for pattern in patterns)
        case {"StringEquals": {"kms:ViaService": services}}:
            return frozenset(_as_list(services))
        case {"StringLike": {"kms:EncryptionContext:cirrusmq:signing-key": pattern}}:
            return frozenset({str(pattern).removesuffix("*")})
    raise TemplateError(f"the condition of {statement.get('Sid')} is not understood")


def _as_list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
