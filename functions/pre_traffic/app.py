"""The hook that CodeDeploy runs before new versions get calls: tries them, and reports."""

from __future__ import annotations

import os
from typing import Any

from cirrusmq_lambda.loading import finish_loading
from cirrusmq.wiring import bootstrap
from cirrusmq_lambda import observability
from cirrusmq_lambda.http import Context
from cirrusmq_lambda.lifecycle_hook import report
from cirrusmq_lambda.trial import Versions, try_versions


def handler(event: dict[str, Any], context: Context) -> None:
    try:
        versions = Versions(
            send=os.environ["SEND_VERSION"],
            receive=os.environ["RECEIVE_VERSION"],
            delete=os.environ["DELETE_VERSION"],
        )
        try_versions(bootstrap.service(), versions, context.get_remaining_time_in_millis)
    except Exception as error:
        observability.logger.exception(f"the new versions are not taken: {error}")
        report(event, "Failed")
    else:
        report(event, "Succeeded")


finish_loading()
