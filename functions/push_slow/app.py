"""Pushes messages to URLs that are slow, new or being retried; invoked by push and sweep, by retry
schedules, and by a subscribe call for its confirmation."""

from __future__ import annotations

from typing import Any

from cirrusmq_lambda.loading import finish_loading
from cirrusmq.invoking.waking import wake
from cirrusmq.push.confirmation import post_token
from cirrusmq.push.delivery import retry
from cirrusmq.push.pending import make_push
from cirrusmq.push.shared_invocation import deliver_all, posting_ms
from cirrusmq.wiring import bootstrap
from cirrusmq.wiring.bootstrap import longer_retries
from cirrusmq_lambda.events import is_known
from cirrusmq_lambda.http import Context

DONE = {"action": "done"}
KINDS = ("confirm", "wake", "retry", "deliver")


@longer_retries()
def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    if not is_known(event, KINDS):
        return DONE
    core, invocation_id = bootstrap.service(), context.aws_request_id
    max_ms = posting_ms(context.get_remaining_time_in_millis())
    if "confirm" in event:
        post_token(core, event["confirm"], invocation_id)
    elif "wake" in event:
        wake(core, event["wake"])
    elif "retry" in event:
        push = make_push(core, event["retry"], invocation_id, max_ms, takes_slow=True)
        if push is not None:
            return retry(push, event["retry"])
    else:
        places = [event["deliver"], *event.get("others", ())]
        deliver_all(core, places, invocation_id, max_ms, takes_slow=True)
    return DONE


finish_loading()
