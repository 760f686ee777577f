"""Reports to CodeDeploy, which waits for it before new versions get calls."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from botocore.config import Config

from cirrusmq.wiring import bootstrap


def report(event: dict[str, Any], status: Literal["Succeeded", "Failed"]) -> None:
    """Reports the hook's status to CodeDeploy. Raises if CodeDeploy cannot be reached."""
    client().put_lifecycle_event_hook_execution_status(
        deploymentId=event["DeploymentId"],
        lifecycleEventHookExecutionId=event["LifecycleEventHookExecutionId"],
        status=status,
    )


@cache
def client() -> Any:
    """Returns CodeDeploy's client, made at the first use."""
    limits = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 4})
    return bootstrap.session().create_client("codedeploy", config=limits)
