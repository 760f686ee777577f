"""Policies of a queue: what a Policy, a RedrivePolicy and a RedriveAllowPolicy say."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from cirrusmq.base.shapes import decode_json
from cirrusmq_dialects import statements
from cirrusmq_dialects.fifo_names import shown_fifo
from cirrusmq_dialects.sqs.errors import SqsError, invalid
from cirrusmq_dialects.sqs.names import ref_in_arn
from cirrusmq_dialects.statements import OwnAccount, Rules

POLICY, ALLOW, REDRIVE = "Policy", "RedriveAllowPolicy", "RedrivePolicy"
_SOURCES = 10
_MAX_RECEIVES = 1_000
_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
_ACTION = re.compile(r"\*|sqs:[A-Za-z*]+", re.ASCII | re.IGNORECASE)


class _RedriveAllow(msgspec.Struct, frozen=True):
    """The text of a RedriveAllowPolicy; members that it has besides are ignored."""

    redrivePermission: str  # noqa: N815 - its name there
    sourceQueueArns: list[str] | None = None  # noqa: N815


def check_policy(text: str, account: str, queue: str) -> None:
    """Checks a Policy of the account's queue, by the core's name of it.

    Raises SqsError: UnsupportedOperation with the statement's Sid, or InvalidAttributeValue if it
    is no policy.
    """
    rules = Rules(
        kind="queue",
        action=_ACTION,
        is_own=lambda resource, own: _queue_in(resource, own) in (queue, shown_fifo(queue)),
    )
    try:
        statements.check(text, account, rules)
    except statements.NoPolicyError as error:
        told = f"Invalid value for the parameter {POLICY}."
        raise SqsError("InvalidAttributeValue", told) from error
    except statements.StatementError as error:
        raise SqsError(
            "UnsupportedOperation",
            f"Policy, statement {error.statement}: {error}. Other accounts get grants of the"
            " queue; keys have scopes.",
        ) from error


def read_redrive(text: str, account: str) -> tuple[str, int]:
    """The dead-letter queue of a RedrivePolicy, by the core's name, and its maxReceiveCount.

    Raises SqsError InvalidParameterValue if it is no such policy, or has another account's queue.
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
    if not _COUNT.fullmatch(count) or not 1 <= int(count) <= _MAX_RECEIVES:
        reason = f"Invalid value for maxReceiveCount: {count[:20]}, valid values are from 1 to"
        raise invalid(REDRIVE, text, f"{reason} {_MAX_RECEIVES} both inclusive.")
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
    """Returns the core's names of queues that a RedriveAllowPolicy allows, or None for all queues.

    Raises SqsError InvalidParameterValue if it is no such policy.
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


def _queue_in(resource: str, own: OwnAccount) -> str | None:
    """Returns the queue of the own account in an ARN, or None for other ARNs."""
    parts = resource.split(":")
    if len(parts) != 6 or not own.is_named(parts[4]):
        return None
    try:
        return ref_in_arn("Resource", resource, parts[4])
    except SqsError:
        return None
