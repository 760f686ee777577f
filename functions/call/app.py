"""Invokes the functions of queues and pull subscriptions with messages, and waits for them; invoked
by functions that find or put such messages, and by this function."""

from __future__ import annotations

from typing import Any

from cirrusmq_lambda.loading import finish_loading
from cirrusmq.invoking.worker import work
from cirrusmq.wiring import bootstrap
from cirrusmq.wiring.bootstrap import longer_retries
from cirrusmq_lambda.events import is_known
from cirrusmq_lambda.http import Context


@longer_retries()
def handler(event: dict[str, Any], context: Context) -> None:
    if is_known(event, ("invoke",)):
        work(bootstrap.service(), event["invoke"], context.get_remaining_time_in_millis())


finish_loading()
