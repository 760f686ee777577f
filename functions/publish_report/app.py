"""Publishes the proposal of a report's job, if no other run was published since it began.

The state machine of the reports starts it after each job. `swap.py` is the jobs' module, and is
beside this one in Lambda. The first call imports it: on one machine jobs publish their runs, so the
function is loaded but never called.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cirrusmq_lambda.http import Context

SAVE_MS = 20_000
"""Reserved time, to answer the progress of the copies."""


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Publishes a proposal, then copies documents. Returns the progress.

    `report`, `proposal`: names; `next`: the index from which the copies continue. Without a
    proposal, only missing documents of the current run are copied.
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
