"""Publishes what a report's job proposed, if no other run was published since it began.

Started by the state machine of the reports, after each job. `swap.py` is the jobs' own module and
beside this one in Lambda. It is imported by the first call: on one machine, where all functions are
loaded and jobs publish themselves, there is none.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from cirrusmq_lambda.http import Context

SAVE_MS = 20_000
"""Kept back, to answer how far the copies of documents are."""
_REFUSALS = ("PreconditionFailed", "ConditionalRequestConflict")


@cache
def _s3() -> Any:
    import boto3

    return boto3.client("s3")


class Bucket:
    """The bucket of the reports; an object's entity tag tells its versions apart."""

    def __init__(self, name: str) -> None:
        self._name = name

    def read(self, name: str) -> tuple[bytes, str] | None:
        """An object and its entity tag, or None if it is missing."""
        try:
            found = _s3().get_object(Bucket=self._name, Key=name)
        except _s3().exceptions.NoSuchKey:
            return None
        return found["Body"].read(), found["ETag"]

    def put(self, name: str, content: bytes, version: str | None) -> bool:
        """Write an object if its version is still this one; None: if it is missing."""
        held: dict[str, str] = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
        try:
            _s3().put_object(Bucket=self._name, Key=name, Body=content, **held)
        except ClientError as error:
            if error.response["Error"]["Code"] in _REFUSALS:
                return False
            raise
        return True


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """`report`, `proposal`: their names; `next`: where the copies go on."""
    from swap import PUBLISHED, Proposal, copy_documents, swap

    bucket = Bucket(os.environ["REPORTS_BUCKET"])
    found = bucket.read(f"proposals/{event['report']}/{event['proposal']}.json")
    if found is None:
        raise LookupError(f"there is no proposal {event['proposal']} of {event['report']}")
    proposal = Proposal.of(found[0])
    outcome = swap(bucket, proposal)
    answer = {"report": event["report"], "outcome": outcome, "next": None, "different": []}
    if outcome != PUBLISHED:
        return answer
    copied = copy_documents(
        bucket,
        proposal,
        start=event.get("next") or 0,
        in_time=lambda: context.get_remaining_time_in_millis() > SAVE_MS,
    )
    return answer | {"next": copied.next, "different": copied.different[:20]}
