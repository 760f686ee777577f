"""Attributes that the core has no place for: they are kept with the queue, and read back."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cirrusmq.model.queue import Queue, SdkAttributes
from cirrusmq_dialects.sqs.errors import SqsError, invalid_value

POLICIES = frozenset({"Policy", "RedriveAllowPolicy"})
SSE = "SqsManagedSseEnabled"
_ENCRYPTION = {
    "KmsMasterKeyId": re.compile(r"[!-~]{0,2048}", re.ASCII),
    "KmsDataKeyReusePeriodSeconds": re.compile(r"[0-9]{2,5}", re.ASCII),
    SSE: re.compile(r"true|false", re.ASCII | re.IGNORECASE),
}
"""Everything is encrypted, by the deployment's own key: they are read back as they were set."""
_REUSE_SECONDS, REUSE_DEFAULT = (60, 86_400), "300"
TEXTS = frozenset({*POLICIES, *_ENCRYPTION})
VISIBILITY = "VisibilityTimeout"
SHORTEST_LEASE_SECONDS = 1
"""The core's; a queue whose timeout is 0 notes that beside it."""


def read_kept(
    given: Mapping[str, str], before: SdkAttributes | None, account: str, queue: str
) -> SdkAttributes | None:
    """Returns the attributes that a queue keeps after a change; an empty text removes one.

    Raises SqsError: InvalidAttributeName, InvalidAttributeValue, or as `check_policy`.
    """
    held = before or SdkAttributes()
    texts, sources = dict(held.texts), held.dead_letters_from
    for name in POLICIES & given.keys():
        texts.pop(name, None)
        if given[name]:
            texts[name] = given[name]
    if VISIBILITY in given:
        texts.pop(VISIBILITY, None)
        if not int(given[VISIBILITY]):
            texts[VISIBILITY] = "0"
    if given.keys() & _ENCRYPTION:
        texts = _with_encryption(texts, given)
    if given.keys() & POLICIES:
        # Few calls have policies: the others' cold starts do without.
        from cirrusmq_dialects.sqs import policies

        if given.get("Policy"):
            policies.check_policy(given["Policy"], account, queue)
        if "RedriveAllowPolicy" in given:
            allow = given["RedriveAllowPolicy"]
            sources = policies.read_redrive_allow(allow, account) if allow else None
    kept = SdkAttributes(texts=texts, dead_letters_from=sources)
    return kept if kept != SdkAttributes() else None


def _with_encryption(texts: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The texts with the encryption that is given: by a key of KMS, by SQS, or none."""
    named = {name: given[name] for name in _ENCRYPTION if name in given}
    for name, value in named.items():
        if not _ENCRYPTION[name].fullmatch(value):
            raise invalid_value(name)
    reuse = named.get("KmsDataKeyReusePeriodSeconds")
    if reuse is not None and not _REUSE_SECONDS[0] <= int(reuse) <= _REUSE_SECONDS[1]:
        raise invalid_value("KmsDataKeyReusePeriodSeconds")
    by_sqs = named.get(SSE, "").lower() == "true"
    if by_sqs and named.get("KmsMasterKeyId"):
        raise SqsError(
            "InvalidAttributeName",
            "You can use one type of server-side encryption (SSE) at one time. You can either"
            " enable KMS SSE or SQS SSE.",
        )
    kept = {name: value for name, value in texts.items() if not by_sqs or name not in _ENCRYPTION}
    kept |= {name: value.lower() if name == SSE else value for name, value in named.items()}
    if "KmsMasterKeyId" in named and not by_sqs:
        kept[SSE] = "false"
    if by_sqs or not kept.get("KmsMasterKeyId"):
        kept.pop("KmsMasterKeyId", None)
        kept.pop("KmsDataKeyReusePeriodSeconds", None)
    if kept.get(SSE) == "true":  # as it is without being said
        del kept[SSE]
    return kept


def hides_nothing(queue: Queue) -> bool:
    """Returns True if the queue's visibility timeout is 0: received messages are active at once."""
    held = queue.attributes.visibility_timeout_seconds
    return queue.sdk_texts.get(VISIBILITY) == "0" and held == SHORTEST_LEASE_SECONDS
