"""Policies of queues and topics: which statements hold here anyway, so that they may be kept.

A policy is taken if each of its statements allows what holds anyway: calls of the own account, and
messages of that account's topics. Everything else would be kept and not enforced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from cirrusmq.base.shapes import decode_json

POLICY_BYTES = 8_192
_OneOrMore: TypeAlias = str | list[str]
_ACCOUNT = re.compile(r"arn:aws:iam::([^:/]+):root|([^:/*]+)", re.ASCII)
_TOPIC = re.compile(r"arn:aws:sns:[^:]+:([^:*?]+):[^:]+", re.ASCII)
_NUMBER = re.compile(r"[0-9]+", re.ASCII)
_SERVICE = "sns.amazonaws.com"
_OPERATORS = frozenset({"StringEquals", "StringLike", "ArnEquals", "ArnLike"})


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one kind of resource."""

    kind: str
    """`queue` or `topic`."""
    action: re.Pattern[str]
    is_own: Callable[[str, OwnAccount], bool]
    """Returns True if the ARN is the ARN of the policy's resource."""


class NoPolicyError(Exception):
    """The text is no policy at all."""


class StatementError(Exception):
    """A statement that says more, or less, than what holds here."""

    def __init__(self, statement: str, reason: str) -> None:
        super().__init__(reason)
        self.statement = statement
        """Its Sid, or its number."""


class _Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One statement; members of other names are refused, as there."""

    Effect: str
    Principal: str | dict[str, _OneOrMore] | None = None
    Action: _OneOrMore | None = None
    Resource: _OneOrMore | None = None
    Condition: dict[str, dict[str, _OneOrMore]] = {}
    Sid: str = ""
    NotPrincipal: Any = None
    NotAction: Any = None
    NotResource: Any = None


class _Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The text of a policy."""

    Statement: _Statement | list[_Statement]
    Version: str = "2008-10-17"
    Id: str = ""


class _RefusedError(Exception):
    """The reason why a statement is refused."""


class OwnAccount:
    """Recognizes the own account by its name, or by a number, as programs of AWS do.

    One number alone: of two, one at least is another account's.
    """

    def __init__(self, account: str) -> None:
        self._account, self._number = account, ""

    def is_named(self, name: str) -> bool:
        """Returns True if the name, or the number, is the own account's."""
        if name == self._account:
            return True
        if not _NUMBER.fullmatch(name):
            return False
        self._number = self._number or name
        return name == self._number

    def is_principal(self, principal: str) -> bool:
        """Returns True if it is the own account: its id, or the ARN of its root."""
        found = _ACCOUNT.fullmatch(principal)
        return found is not None and self.is_named(found[1] or found[2])

    def has_topics(self, arn: str) -> bool:
        """Returns True if it is the ARN of own topics, whose name may have `*` and `?`."""
        found = _TOPIC.fullmatch(arn)
        return found is not None and self.is_named(found[1])


def check(text: str, account: str, rules: Rules) -> None:
    """Checks a policy of a resource of the account. Raises NoPolicyError or StatementError."""
    try:
        policy = decode_json(text, _Policy)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoPolicyError from error
    listed = policy.Statement if isinstance(policy.Statement, list) else [policy.Statement]
    if not listed or len(text.encode()) > POLICY_BYTES:
        raise NoPolicyError
    own = OwnAccount(account)
    for number, statement in enumerate(listed, 1):
        _check_shape(statement, rules)
        try:
            _check_statement(statement, own, rules)
        except _RefusedError as error:
            raise StatementError(statement.Sid[:100] or str(number), str(error)) from error


def _check_shape(statement: _Statement, rules: Rules) -> None:
    """Raises NoPolicyError for a statement that AWS would not take either."""
    actions = _texts(statement.Action)
    principal = statement.Principal
    has_one = principal == "*" if isinstance(principal, str) else any(_principals(principal))
    if not has_one and statement.NotPrincipal is None:
        raise NoPolicyError
    if statement.Effect not in ("Allow", "Deny") or not all(map(rules.action.fullmatch, actions)):
        raise NoPolicyError
    if not actions and statement.NotAction is None:
        raise NoPolicyError
    if not _texts(statement.Resource) and statement.NotResource is None:
        raise NoPolicyError


def _check_statement(statement: _Statement, own: OwnAccount, rules: Rules) -> None:
    kind = rules.kind
    if statement.Effect != "Allow":
        raise _RefusedError("Deny is not enforced")
    for name in ("NotPrincipal", "NotAction", "NotResource"):
        if getattr(statement, name) is not None:
            raise _RefusedError(f"{name} is not supported")
    resources = _texts(statement.Resource)
    if not any(each == "*" or each.startswith("arn:") for each in resources):
        return  # AWS keeps it, too: it allows nothing there
    _check_conditions(statement, own, kind)
    for principal in _principals(statement.Principal):
        if own.is_principal(principal):
            continue
        if principal not in ("*", _SERVICE):
            raise _RefusedError(f"the principal {principal[:200]} is not the {kind}'s account")
        if not statement.Condition:
            raise _RefusedError(
                f"the principal {principal} needs a Condition: aws:SourceArn, a topic of the"
                f" {kind}'s account, or aws:SourceAccount, that account"
            )
    for resource in resources:
        if resource != "*" and not rules.is_own(resource, own):
            raise _RefusedError(f"the resource {resource[:200]} is another {kind}")


def _check_conditions(statement: _Statement, own: OwnAccount, kind: str) -> None:
    """Refuses all conditions but these: the source is an own topic, or the own account."""
    checks = {
        "aws:sourcearn": own.has_topics,
        "aws:sourceaccount": own.is_named,
        "aws:sourceowner": own.is_named,
    }
    for operator, keys in statement.Condition.items():
        for key, values in keys.items():
            is_own = checks.get(key.lower())
            if operator not in _OPERATORS or is_own is None:
                raise _RefusedError(f"the condition {operator} of {key[:100]} is not enforced")
            listed = _texts(values)
            if not listed or not all(map(is_own, listed)):
                raise _RefusedError(f"the condition of {key[:100]} is not of the {kind}'s account")


def _principals(given: str | dict[str, _OneOrMore] | None) -> Iterator[str]:
    """The principals: `*`, accounts, and services; of other kinds with the kind before them."""
    if isinstance(given, str):
        yield given
        return
    for kind, listed in (given or {}).items():
        for each in _texts(listed):
            is_known = (kind == "Service") == (each == _SERVICE) and kind in ("AWS", "Service")
            yield each if is_known else f"{kind} {each}"


def _texts(given: _OneOrMore | None) -> Sequence[str]:
    if given is None:
        return ()
    return [given] if isinstance(given, str) else given
