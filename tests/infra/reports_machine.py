"""The reports' state machine of the template, on moto's interpreter."""

from __future__ import annotations

import json
from typing import Any

from tests.infra.pipeline_services import Services

from cirrusmq_local.cloud import executions
from cirrusmq_local.cloud.template import Template
from cirrusmq_local.testing import ManualClock

ARN = "arn:aws:states:local:000000000000:stateMachine:cirrusmq-reports"


class Machine:
    """Runs the template's machine against services that a test prepares."""

    def __init__(self, template: Template, services: Services) -> None:
        (found,) = (each for each in template.machines if each.logical_id == "Reports")
        self.definition = json.loads(found.definition)
        self.services = services

    def let_jobs_last_a_second(self) -> None:
        for branch in self.definition["States"]["Jobs"]["Branches"]:
            for state in branch["States"].values():
                if state["Type"] == "Task":
                    state["TimeoutSeconds"] = 1

    def run(self, name: str = "night-1", at: str | None = None) -> Any:
        interpretation = executions.import_interpreter().Interpretation(
            json.dumps(self.definition),
            machine_arn=ARN,
            arn=f"{ARN.replace('stateMachine', 'execution')}:{name}",
            given={} if at is None else {"at": at},
            run=self.services.invoke,
            clock=ManualClock(),
        )
        return interpretation.run()

    def succeed(self, name: str = "night-1", at: str | None = None) -> None:
        """A run to its good end."""
        ending = self.run(name, at)
        assert ending.status == "SUCCEEDED", ending.error

    def fail(self) -> str:
        """A run that fails. Returns its error."""
        ending = self.run()
        assert ending.status == "FAILED"
        return str(ending.error)

    def job(self, name: str) -> dict[str, Any]:
        """The first request to EMR for a job."""
        return next(each for each in self.services.of("StartJobRun") if each["name"] == name)
