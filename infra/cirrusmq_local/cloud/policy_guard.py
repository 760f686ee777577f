"""A policy of IAM in force before the engine, as it would be before DynamoDB.

It knows the actions, tables and conditions of `own_policy`, and refuses to judge by others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from cirrusmq_local.cloud.cloudformation import TemplateError
from cirrusmq_local.cloud.guard import needs
from cirrusmq_local.engine.client import Executing
from cirrusmq_local.engine.errors import EngineError

_EXPRESSIONS = ("ConditionExpression", "UpdateExpression")
_NAME = re.compile(r"(?<![:\w#])#?[A-Za-z_]\w*")
_WORDS = frozenset(
    [
        *("AND", "OR", "NOT", "SET", "ADD", "REMOVE", "DELETE", "BETWEEN", "IN"),
        *("attribute_exists", "attribute_not_exists", "if_not_exists", "list_append"),
        *("begins_with", "contains", "size"),
    ]
)


class PolicyGuard:
    """Does operations as the engine does, but only what a policy allows."""

    def __init__(self, engine: Executing, policy: Mapping[str, Any]) -> None:
        self._engine = engine
        self._policy = policy
        self.refused: list[str] = []
        """Operations that were refused, in words."""

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do one operation, or raise AccessDeniedException."""
        for table, action, partition in needs(operation, request):
            attributes = frozenset(attributes_of(_part(request, table, action, partition)))
            if not allows(self._policy, action, table, partition, attributes):
                text = f"{action} on {table} {partition}, attributes {sorted(attributes)}"
                self.refused.append(text)
                raise EngineError("AccessDeniedException", f"not allowed: {text}")
        return self._engine.execute(operation, request)


def allows(
    policy: Mapping[str, Any], action: str, table: str, partition: str, attributes: Iterable[str]
) -> bool:
    """Returns True if a statement of the policy allows an action on items of a partition key."""
    asked = {"dynamodb:LeadingKeys": [partition], "dynamodb:Attributes": list(attributes)}
    return any(
        statement["Effect"] == "Allow"
        and action in statement["Action"]
        and str(statement["Resource"]).rpartition("/")[2] == table
        and _holds(statement["Condition"], asked)
        for statement in policy["Statement"]
    )


def attributes_of(request: Mapping[str, Any]) -> Iterator[str]:
    """The names of the attributes in a write: of its item, its key and its expressions."""
    yield from request.get("Item", {})
    yield from request.get("Key", {})
    names = request.get("ExpressionAttributeNames", {})
    for expression in _EXPRESSIONS:
        for found in _NAME.findall(request.get(expression, "")):
            if found not in _WORDS:
                yield names.get(found, found)


def _holds(condition: Mapping[str, Any], asked: Mapping[str, Sequence[str]]) -> bool:
    for operator, held in condition.items():
        for name, wanted in held.items():
            values = asked[name]
            match operator:
                case "ForAllValues:StringLike":
                    fits = all(any(fnmatchcase(each, one) for one in wanted) for each in values)
                case "ForAllValues:StringEquals":
                    fits = set(values) <= set(wanted)
                case "Null":
                    fits = bool(any(values)) is (wanted == "false")
                case _:
                    raise TemplateError(f"the condition {operator} is not understood")
            if not fits:
                return False
    return True


def _part(request: Mapping[str, Any], table: str, action: str, partition: str) -> Mapping[str, Any]:
    """The write that a need is about: the request, or all parts of a transaction with its key."""
    if "TransactItems" not in request:
        return request
    verb = action.removeprefix("dynamodb:").removesuffix("Item")
    held: dict[str, Any] = {"Item": {}, "ExpressionAttributeNames": {}}
    texts = []
    for each in request["TransactItems"]:
        part = each.get(verb)
        if part is None or part["TableName"] != table:
            continue
        if (part.get("Item") or part.get("Key"))["pk"]["S"] != partition:
            continue
        held["Item"] |= {**part.get("Item", {}), **part.get("Key", {})}
        held["ExpressionAttributeNames"] |= part.get("ExpressionAttributeNames", {})
        texts += [part.get(expression, "") for expression in _EXPRESSIONS]
    return held | {"ConditionExpression": " ".join(texts)}
