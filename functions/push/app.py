"""Pushes messages to fast URLs, and passes other URLs' messages on to push_slow; invoked by fan_out
and sweep."""

from __future__ import annotations

from typing import Any

from cirrusmq_lambda.loading import finish_loading
from cirrusmq.invoking.waking import wake
from cirrusmq.push.delivery import retry
from cirrusmq.push.pending import make_push
from cirrusmq.push.shared_invocation import deliver_all, posting_ms
from cirrusmq.wiring import bootstrap
from cirrusmq.wiring.bootstrap import longer_retries
from cirrusmq_lambda.events import is_known
from cirrusmq_lambda.http import Context

DONE = {"action": "done"}
KINDS = ("confirm", "invoke", "wake", "retry", "deliver")


@longer_retries()
def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    if not is_known(event, KINDS):
        return DONE
    core, invocation_id = bootstrap.service(), context.aws_request_id
    max_ms = posting_ms(context.get_remaining_time_in_millis())
    if "deliver" in event:
        places = [event["deliver"], *event.get("others", ())]
        deliver_all(core, places, invocation_id, max_ms)
        return DONE
    # Events of the previous release, in which this function handled all URLs.
    if "retry" in event:
        push = make_push(core, event["retry"], invocation_id, max_ms, takes_slow=True)
        if push is not None:
            return retry(push, event["retry"])
    elif "wake" in event:
        wake(core, event["wake"])
    else:
        core.invoke("call" if "invoke" in event else "push_slow", event)
    return DONE


finish_loading()
