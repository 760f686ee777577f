"""Policies of a queue: what a Policy and a RedriveAllowPolicy say, and what of it holds here.

A Policy is taken if each of its statements allows what is so anyway: calls of the queue's own
account, and messages of that account's topics. Everything else would be kept and not enforced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from cirrusmq.base.decoding import decode_json
from cirrusmq_dialects.sqs.errors import SqsError, invalid
from cirrusmq_dialects.sqs.names import ref_in_arn

POLICY, ALLOW, REDRIVE = "Policy", "RedriveAllowPolicy", "RedrivePolicy"
POLICY_BYTES = 8_192
_SOURCES = 10
_MOST_RECEIVES = 1_000
_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
_OneOrMore: TypeAlias = str | list[str]
_ACCOUNT = re.compile(r"arn:aws:iam::([^:/]+):root|([^:/*]+)", re.ASCII)
_TOPIC = re.compile(r"arn:aws:sns:[^:]+:([^:*?]+):[^:]+", re.ASCII)
_NUMBER = re.compile(r"[0-9]+", re.ASCII)
_ACTION = re.compile(r"\*|sqs:[A-Za-z*]+", re.ASCII | re.IGNORECASE)
_SERVICE = "sns.amazonaws.com"
_OPERATORS = frozenset({"StringEquals", "StringLike", "ArnEquals", "ArnLike"})


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
    """The text of a Policy."""

    Statement: _Statement | list[_Statement]
    Version: str = "2008-10-17"
    Id: str = ""


class _RedriveAllow(msgspec.Struct, frozen=True):
    """The text of a RedriveAllowPolicy; members that it has besides are ignored."""

    redrivePermission: str  # noqa: N815 - its name there
    sourceQueueArns: list[str] | None = None  # noqa: N815


class _RefusedError(Exception):
    """A part of a statement that says more, or less, than what holds here."""


def check_policy(text: str, account: str, queue: str) -> None:
    """Check a Policy of the account's queue, by the core's name of it.

    UnsupportedOperation with the statement's Sid; InvalidAttributeValue for what is no policy.
    """
    try:
        policy = decode_json(text, _Policy)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _no_policy() from error
    listed = policy.Statement if isinstance(policy.Statement, list) else [policy.Statement]
    if not listed or len(text.encode()) > POLICY_BYTES:
        raise _no_policy()
    own = _OwnAccount(account)
    for number, statement in enumerate(listed, 1):
        _check_shape(statement)
        try:
            _check_statement(statement, own, queue)
        except _RefusedError as error:
            raise SqsError(
                "UnsupportedOperation",
                f"Policy, statement {statement.Sid[:100] or number}: {error}. Other accounts get"
                " grants of the queue; keys have scopes.",
            ) from error


def read_redrive(text: str, account: str) -> tuple[str, int]:
    """The dead-letter queue of a RedrivePolicy, by the core's name, and its maxReceiveCount.

    InvalidParameterValue for what is no such policy, or of another account's queue.
    """
    try:
        policy = decode_json(text, dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(REDRIVE, text, "Redrive policy is not a valid JSON map.") from error
    for name in ("deadLetterTargetArn", "maxReceiveCount"):
        if policy.get(name) is None:
            reason = f"Redrive policy does not contain mandatory attribute: {name}."
            raise invalid(REDRIVE, text, reason)
    count = str(policy["maxReceiveCount"])
    if not _COUNT.fullmatch(count) or not 1 <= int(count) <= _MOST_RECEIVES:
        reason = f"Invalid value for maxReceiveCount: {count[:20]}, valid values are from 1 to"
        raise invalid(REDRIVE, text, f"{reason} {_MOST_RECEIVES} both inclusive.")
    try:
        queue = ref_in_arn(REDRIVE, str(policy["deadLetterTargetArn"]), account)
    except SqsError as error:
        if error.shape == "QueueDoesNotExist":  # no queue can have the name
            raise invalid(REDRIVE, text, "Dead letter target does not exist.") from error
        raise invalid(REDRIVE, text, "Invalid value for deadLetterTargetArn.") from error
    if ":" in queue:
        reason = "A dead-letter queue must be of the account of its source."
        raise invalid(REDRIVE, text, reason)
    return queue, int(count)


def read_redrive_allow(text: str, account: str) -> list[str] | None:
    """The queues that a RedriveAllowPolicy allows, by the core's names; None: every queue.

    InvalidParameterValue for what is no such policy.
    """
    told = "Amazon SQS can't create the redrive allow policy."
    try:
        policy = decode_json(text, _RedriveAllow)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(ALLOW, text, f"{told} It must be a JSON map.") from error
    permission, arns = policy.redrivePermission, policy.sourceQueueArns
    if permission not in ("allowAll", "denyAll", "byQueue"):
        raise invalid(
            ALLOW, text, f"{told} redrivePermission must be allowAll, denyAll or byQueue."
        )
    if permission != "byQueue":
        if arns is not None:
            reason = "To specify one or more source queue ARNs, you must set redrivePermission to"
            raise invalid(ALLOW, text, f"{told} {reason} byQueue.")
        return None if permission == "allowAll" else []
    if not arns or len(arns) > _SOURCES:
        raise invalid(
            ALLOW, text, f"{told} byQueue needs sourceQueueArns of 1 to {_SOURCES} queues."
        )
    return sorted({ref_in_arn("sourceQueueArns", each, account) for each in arns})


class _OwnAccount:
    """Tells the own account: by its name, or by a number, as programs of AWS know it by.

    One number alone: of two, one at least is another account's.
    """

    def __init__(self, account: str) -> None:
        self._account, self._number = account, ""

    def is_named(self, name: str) -> bool:
        """Whether the name, or the number, is the own account's."""
        if name == self._account:
            return True
        if not _NUMBER.fullmatch(name):
            return False
        self._number = self._number or name
        return name == self._number

    def is_principal(self, principal: str) -> bool:
        """Whether it is the own account: its id, or the ARN of its root."""
        found = _ACCOUNT.fullmatch(principal)
        return found is not None and self.is_named(found[1] or found[2])

    def has_topics(self, arn: str) -> bool:
        """Whether it is the ARN of own topics: `*` and `?` may stand in the topic's name."""
        found = _TOPIC.fullmatch(arn)
        return found is not None and self.is_named(found[1])


def _check_shape(statement: _Statement) -> None:
    """InvalidAttributeValue for a statement that SQS would not take either."""
    actions = _texts(statement.Action)
    principal = statement.Principal
    has_one = principal == "*" if isinstance(principal, str) else any(_principals(principal))
    if not has_one and statement.NotPrincipal is None:
        raise _no_policy()
    if statement.Effect not in ("Allow", "Deny") or not all(map(_ACTION.fullmatch, actions)):
        raise _no_policy()
    if not actions and statement.NotAction is None:
        raise _no_policy()
    if not _texts(statement.Resource) and statement.NotResource is None:
        raise _no_policy()


def _check_statement(statement: _Statement, own: _OwnAccount, queue: str) -> None:
    if statement.Effect != "Allow":
        raise _RefusedError("Deny is not enforced")
    for name in ("NotPrincipal", "NotAction", "NotResource"):
        if getattr(statement, name) is not None:
            raise _RefusedError(f"{name} is not supported")
    _check_conditions(statement, own)
    for principal in _principals(statement.Principal):
        if own.is_principal(principal):
            continue
        if principal not in ("*", _SERVICE):
            raise _RefusedError(f"the principal {principal[:200]} is not the queue's account")
        if not statement.Condition:
            raise _RefusedError(
                f"the principal {principal} needs a Condition: aws:SourceArn, a topic of the"
                " queue's account, or aws:SourceAccount, that account"
            )
    for resource in _texts(statement.Resource):
        if resource != "*" and _queue_in(resource, own) != queue:
            raise _RefusedError(f"the resource {resource[:200]} is another queue")


def _check_conditions(statement: _Statement, own: _OwnAccount) -> None:
    """Refuse conditions but these: the source is an own topic, or the own account."""
    for operator, keys in statement.Condition.items():
        for key, values in keys.items():
            checks = {"aws:sourcearn": own.has_topics, "aws:sourceaccount": own.is_named}
            is_own = checks.get(key.lower())
            if operator not in _OPERATORS or is_own is None:
                raise _RefusedError(f"the condition {operator} of {key[:100]} is not enforced")
            listed = _texts(values)
            if not listed or not all(map(is_own, listed)):
                raise _RefusedError(f"the condition of {key[:100]} is not of the queue's account")


def _principals(given: str | dict[str, _OneOrMore] | None) -> Iterator[str]:
    """The principals: `*`, accounts, and services; of other kinds with the kind before them."""
    if isinstance(given, str):
        yield given
        return
    for kind, listed in (given or {}).items():
        for each in _texts(listed):
            is_known = (kind == "Service") == (each == _SERVICE) and kind in ("AWS", "Service")
            yield each if is_known else f"{kind} {each}"


def _queue_in(resource: str, own: _OwnAccount) -> str | None:
    """The queue of the own account in an ARN; None for others."""
    parts = resource.split(":")
    if len(parts) != 6 or not own.is_named(parts[4]):
        return None
    try:
        return ref_in_arn("Resource", resource, parts[4])
    except SqsError:
        return None


def _texts(given: _OneOrMore | None) -> Sequence[str]:
    if given is None:
        return ()
    return [given] if isinstance(given, str) else given


def _no_policy() -> SqsError:
    return SqsError("InvalidAttributeValue", f"Invalid value for the parameter {POLICY}.")
