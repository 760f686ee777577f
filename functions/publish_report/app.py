"""Publishes what a report's job proposed, if no other run was published since it began.

Started by the state machine of the reports, after each job. `swap.py` is the jobs' own module and
beside this one in Lambda. It is imported by the first call: on one machine, where all functions are
loaded and jobs publish themselves, there is none.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cirrusmq_lambda.http import Context

SAVE_MS = 20_000
"""Kept back, to answer how far the copies of documents are."""


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """`report`, `proposal`: their names; `next`: where the copies go on.

    Without a proposal: the documents of the current run are copied, as far as they are missing.
    """
    from reports_bucket import Bucket
    from swap import PUBLISHED, copy_documents, proposed, published, swap

    bucket = Bucket(os.environ["REPORTS_BUCKET"])
    report, name = event["report"], event.get("proposal")
    proposal = proposed(bucket, report, name) if name else published(bucket, report)
    if proposal is None:
        raise LookupError(f"there is no proposal {name} of {report}" if name else f"no {report}")
    outcome = swap(bucket, proposal)
    answer = {"report": report, "outcome": outcome, "next": None, "different": []}
    if outcome != PUBLISHED:
        return answer
    copied = copy_documents(
        bucket,
        proposal,
        start=event.get("next") or 0,
        in_time=lambda: context.get_remaining_time_in_millis() > SAVE_MS,
    )
    return answer | {"next": copied.next, "different": copied.different[:20]}
