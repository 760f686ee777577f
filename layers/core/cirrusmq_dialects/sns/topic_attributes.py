"""A topic's attributes: as SNS has them, and what of them has an effect."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from cirrusmq.base.names import FIFO
from cirrusmq.model.topic import Topic
from cirrusmq_dialects import statements
from cirrusmq_dialects.sns.delivery_policies import DELIVERY_POLICY, read_of_topic
from cirrusmq_dialects.sns.errors import SnsError, invalid
from cirrusmq_dialects.statements import OwnAccount, Rules

DISPLAY_NAME, FIFO_TOPIC, CONTENT_BASED = "DisplayName", "FifoTopic", "ContentBasedDeduplication"
POLICY, SCOPE, SIGNATURE = "Policy", "FifoThroughputScope", "SignatureVersion"
_NAME_CHARACTERS = 100
_ACTION = re.compile(r"\*|sns:[A-Za-z*]+", re.ASCII | re.IGNORECASE)
_FLAGS = ("true", "false")
_SCOPES = ("Topic", "MessageGroup")
_SIGNATURES = ("1", "2")
_OWNERS_ACTIONS = (
    *("GetTopicAttributes", "SetTopicAttributes", "AddPermission", "RemovePermission"),
    *("DeleteTopic", "Subscribe", "ListSubscriptionsByTopic", "Publish"),
)


def read_attributes(
    given: Mapping[str, str], account: str, name: str, before: Topic | None = None
) -> dict[str, str]:
    """The attributes as they are kept, checked; an empty text: not set. Others are refused.

    before: the topic that is to have them, if there is one: what kind it is is fixed then.
    """
    kept: dict[str, str] = {}
    fifo = name.endswith(FIFO)
    for each, value in given.items():
        if each == DISPLAY_NAME:
            if len(value) > _NAME_CHARACTERS:
                raise invalid(f"DisplayName Reason: has more than {_NAME_CHARACTERS} characters.")
            kept[each] = value
        elif each == DELIVERY_POLICY:
            read_of_topic(value)
            kept[each] = value
        elif each == POLICY:
            if value:
                _check_policy(value, account, name)
            kept[each] = value
        elif each in (FIFO_TOPIC, CONTENT_BASED):
            if value.lower() not in _FLAGS or (before is not None and each == FIFO_TOPIC):
                raise invalid(f"Attributes Reason: {each}: it cannot be {value[:80]} here.")
            if value.lower() == "true":
                if not fifo:
                    raise invalid(f"Attributes Reason: {each}: the topic is no FIFO topic.")
                kept[each] = "true"
            elif before is not None or each == CONTENT_BASED:
                kept[each] = ""
        elif each == SIGNATURE:
            # It is kept for programs that read it back: no notification has SNS's signature.
            if value not in _SIGNATURES:
                raise invalid(f"Attributes Reason: {each}: must be {' or '.join(_SIGNATURES)}.")
            kept[each] = value
        elif each == SCOPE and fifo:
            if value not in _SCOPES:
                raise invalid(f"Attributes Reason: {each}: must be {' or '.join(_SCOPES)}.")
            kept[each] = value
        else:
            told = f"AttributeName Reason: {each[:80]} is not supported here."
            raise invalid(told if before is not None else f"Attributes Reason: {told}")
    if before is None and fifo != (kept.get(FIFO_TOPIC) == "true"):
        told = "the name of a FIFO topic ends with .fifo, and its FifoTopic is true."
        raise invalid(f"Topic Name Reason: {told}")
    return kept


def show(topic: Topic) -> dict[str, str]:
    """Returns the attributes that were set, and the ones a FIFO topic always has."""
    shown = {DISPLAY_NAME: "", **topic.sdk}
    if is_fifo(topic):
        shown.setdefault(CONTENT_BASED, "false")
        shown[FIFO_TOPIC] = "true"
    return shown


def default_policy(arn: str, account: str) -> str:
    """The policy of a topic without one: its account may do all.

    Programs read it, add a statement, and set it again.
    """
    statement = {
        "Sid": "__default_statement_ID",
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": [f"SNS:{action}" for action in _OWNERS_ACTIONS],
        "Resource": arn,
        "Condition": {"StringEquals": {"AWS:SourceOwner": account}},
    }
    policy = {"Version": "2008-10-17", "Id": "__default_policy_ID", "Statement": [statement]}
    return msgspec.json.encode(policy).decode()


def is_fifo(topic: Topic) -> bool:
    """Returns True if a topic is a FIFO topic, by its name."""
    return topic.name.endswith(FIFO)


def _check_policy(text: str, account: str, name: str) -> None:
    def is_own(resource: str, own: OwnAccount) -> bool:
        parts = resource.split(":")
        if len(parts) != 6 or parts[:3] != ["arn", "aws", "sns"]:
            return False
        return own.is_named(parts[4]) and parts[5] == name

    try:
        statements.check(text, account, Rules(kind="topic", action=_ACTION, is_own=is_own))
    except statements.NoPolicyError as error:
        raise invalid("Policy Reason: it is no policy.") from error
    except statements.StatementError as error:
        told = f"Policy, statement {error.statement}: {error}. Other accounts get grants of the"
        raise SnsError("InvalidParameter", f"{told} topic; keys have scopes.") from error
