"""Long work, step by step: operations (purge, rewind, redrive, backfill), delivery of shares that
fan_out parked, dead letters by age, parcels that receives named; invoked asynchronously. An
operator invokes it to deliver the logs again, and to see the progress."""

from __future__ import annotations

from typing import Any

from cirrusmq_lambda.loading import finish_loading
from cirrusmq.base.shapes import convert
from cirrusmq.fanout.parked import drain
from cirrusmq.lifecycle.tidying import tidy
from cirrusmq.maintenance.visits import give_up_on
from cirrusmq.operations import fan_out_again
from cirrusmq.operations.runner import run
from cirrusmq.queues.operations import Pointer
from cirrusmq.runtime.isolation import log_and_continue
from cirrusmq.wiring import bootstrap
from cirrusmq.wiring.bootstrap import longer_retries
from cirrusmq_lambda.events import is_known
from cirrusmq_lambda.http import Context

SAVE_MS = 10_000
"""Reserved time, to save the progress and to start the next run."""
CALLS_MS = 30_000
"""Reserved time for a page that is under way."""
KINDS = ("fan_out_since", "fan_out_state", "parked", "aged", "operation")


@longer_retries()
def handler(event: dict[str, Any], context: Context) -> dict[str, Any] | None:
    core = bootstrap.service()
    if not is_known(event, KINDS):
        return None
    if "fan_out_since" in event:
        started = fan_out_again.ask(core, event["fan_out_since"], event.get("until"))
        return fan_out_again.show(started)
    if "fan_out_state" in event:
        return fan_out_again.find(core, event["fan_out_state"])
    max_ms = context.get_remaining_time_in_millis() - SAVE_MS
    if "parked" in event:
        drain(core, event["parked"], max_ms - CALLS_MS)
    elif "aged" in event:
        aged = event["aged"]
        place = aged["resource"], aged["partition"]
        if "parcels" in aged:
            with log_and_continue("the next look names these parcels again"):
                tidy(core, *place, aged["parcels"], max_ms - CALLS_MS)
        else:
            give_up_on(core, *place, max_ms - CALLS_MS)
    else:
        run(core, convert(event["operation"], Pointer), max_ms, event.get("hops", 0))
    return None


finish_loading()
