"""Pushes messages to URLs; invoked by fan_out and sweep, and by the retry schedules."""

from __future__ import annotations

from typing import Any

from cirrusmq.push.confirmation import post_token
from cirrusmq.push.delivery import deliver, retry
from cirrusmq.push.pending import make_push
from cirrusmq.wiring import bootstrap
from cirrusmq_lambda.http import Context

POST_MS = 17_000
"""Kept back: a post of 15 s, and the writes after it."""


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    core = bootstrap.service()
    if "confirm" in event:
        post_token(core, event["confirm"], context.aws_request_id)
        return {"action": "done"}
    place = event.get("retry") or event["deliver"]
    most_ms = context.get_remaining_time_in_millis() - POST_MS
    push = make_push(core, place, context.aws_request_id, most_ms)
    if push is not None and "retry" in event:
        return retry(push, event["retry"])
    if push is not None:
        deliver(push)
    return {"action": "done"}
