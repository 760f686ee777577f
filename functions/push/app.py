"""Pushes messages to URLs; invoked by fan_out and sweep, and by the retry schedules."""

from __future__ import annotations

from typing import Any

from cirrusmq_lambda.loading import finish_loading
from cirrusmq.invoking.waking import wake
from cirrusmq.push.confirmation import post_token
from cirrusmq.push.delivery import retry
from cirrusmq.push.pending import make_push
from cirrusmq.push.sharing import deliver_all
from cirrusmq.wiring import bootstrap
from cirrusmq.wiring.attempts import patient
from cirrusmq_lambda.events import is_known
from cirrusmq_lambda.http import Context

RUN_MS = 120_000
"""Of an invocation: a retry schedule waits for no longer."""
POST_MS = 17_000
"""Kept back: a post of 15 s, and the writes after it."""
DONE = {"action": "done"}
KINDS = ("confirm", "invoke", "wake", "retry", "deliver")


@patient()
def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    core = bootstrap.service()
    left_ms = context.get_remaining_time_in_millis()
    if not is_known(event, KINDS):
        return DONE
    if "confirm" in event:
        post_token(core, event["confirm"], context.aws_request_id)
    elif "invoke" in event:
        core.invoke("call", event)  # of a release in which this function did that work
    elif "wake" in event:
        wake(core, event["wake"])
    elif "retry" in event:
        push = make_push(core, event["retry"], context.aws_request_id, _posting_ms(left_ms))
        if push is not None:
            return retry(push, event["retry"])
    else:
        places = [event["deliver"], *event.get("others", ())]
        deliver_all(core, places, context.aws_request_id, _posting_ms(left_ms))
    return DONE


def _posting_ms(left_ms: int) -> int:
    return min(left_ms, RUN_MS) - POST_MS


finish_loading()
