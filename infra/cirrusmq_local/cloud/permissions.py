"""The permissions of a function, from the policies in its template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from cirrusmq_local.cloud.cloudformation import TemplateError

Permissions: TypeAlias = Mapping[str, Mapping[str, frozenset[str]]]
"""Resource (`Messages.Arn`) -> action -> what it is confined to.

That is: beginnings of partition keys of a table; of a key of KMS, services that use it for a role,
and beginnings of the ids of signing keys whose secrets it encrypts.
"""


def allowed(policies: Sequence[Any], named: Mapping[str, Any]) -> Permissions:
    """The permissions of inline policies, and of those that are named; `named` has their texts."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for policy in policies:
        document = policy if isinstance(policy, dict) else named.get(policy, {"Statement": ()})
        for statement in document["Statement"]:
            for target in _as_list(statement["Resource"]):
                for action in _as_list(statement["Action"]):
                    actions = found.setdefault(target, {})
                    actions[action] = actions.get(action, frozenset()) | _keys(statement)
    return found


def _keys(statement: Mapping[str, Any]) -> frozenset[str]:
    """Beginnings of what a statement confines its actions to; the empty one where it does not."""
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
