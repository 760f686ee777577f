"""Nightly reports: the state machine of the template, on moto's interpreter and faked services."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.infra.pipeline_services import EXPORT_ID, Services, export_arn, serve

from cirrusmq_local.cloud import executions
from cirrusmq_local.cloud.template import Template
from cirrusmq_local.testing import ManualClock
from cirrusmq_reports import backlog_command, billing_command
from cirrusmq_reports.session import submit_parameters

ARN = "arn:aws:states:local:000000000000:stateMachine:cirrusmq-reports"
JOBS = "s3://PipelineBucket/jobs"
REPORTS = "s3://ReportsBucket"


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

    def run(self, name: str = "night-1") -> Any:
        interpretation = executions._import_interpreter().Interpretation(
            json.dumps(self.definition),
            machine_arn=ARN,
            arn=f"{ARN.replace('stateMachine', 'execution')}:{name}",
            given={},
            run=lambda function, event: pytest.fail(f"{function} is no part of this"),
            clock=ManualClock(),
        )
        return interpretation.run()

    def job(self, name: str) -> dict[str, Any]:
        """The first request to EMR for a job."""
        return next(each for each in self.services.of("StartJobRun") if each["name"] == name)


@pytest.fixture
def services() -> Services:
    return Services()


@pytest.fixture
def machine(
    template: Template, services: Services, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Machine]:
    with serve(services, monkeypatch):
        yield Machine(template, services)


def folder(table: str) -> str:
    return f"s3://PipelineBucket/exports/{table}/AWSDynamoDB/{EXPORT_ID}"


def test_reports_are_made_from_exports_of_all_three_tables(machine: Machine) -> None:
    ending = machine.run()
    assert ending.status == "SUCCEEDED", ending.error
    exports = {each["TableArn"]: each for each in machine.services.of("ExportTableToPointInTime")}
    assert set(exports) == {"Usage.Arn", "Messages.Arn", "Directory.Arn"}
    for asked in exports.values():
        assert asked["ExportType"] == "FULL_EXPORT"
        assert asked["ExportFormat"] == "DYNAMODB_JSON"
        assert (asked["S3SseAlgorithm"], asked["S3SseKmsKeyId"]) == ("KMS", "Key.Arn")
        assert asked["S3Bucket"] == "PipelineBucket"
    prefixes = {asked["S3Prefix"] for asked in exports.values()}
    assert prefixes == {"exports/usage", "exports/messages", "exports/directory"}


def test_jobs_start_when_the_last_export_has_ended(machine: Machine) -> None:
    still = {"ExportStatus": "IN_PROGRESS"}
    machine.services.exporting["Messages"] = [still, still, {"ExportStatus": "COMPLETED"}]
    assert machine.run().status == "SUCCEEDED"
    names = [name for name, _ in machine.services.calls]
    assert max(i for i, name in enumerate(names) if name == "DescribeExport") < names.index(
        "StartJobRun"
    )
    assert names.index("PutObject") == len(names) - 1
    # One wait for each look at an export, a minute long.
    assert machine.services.waits == [60] * names.count("DescribeExport") == [60] * 5


def test_each_job_gets_what_it_takes(machine: Machine) -> None:
    machine.run()
    billing, backlog = machine.job("billing"), machine.job("backlog")
    options = billing_command._parser().parse_args(arguments(billing))
    assert (options.exports, options.output) == ([folder("usage")], REPORTS)
    assert options.rate_card == f"{JOBS}/rate_card.yaml"
    options = backlog_command._parser().parse_args(arguments(backlog))
    assert (options.exports, options.directories) == ([folder("messages")], [folder("directory")])
    assert options.output == REPORTS
    for name, asked in (("billing", billing), ("backlog", backlog)):
        spark = asked["jobDriver"]["sparkSubmit"]
        assert spark["entryPoint"] == f"{JOBS}/{name}_job.py"
        assert f"--py-files {JOBS}/cirrusmq_reports.zip " in spark["sparkSubmitParameters"]
        assert submit_parameters() in " ".join(spark["sparkSubmitParameters"].split())
        assert asked["executionRoleArn"] == "JobRole.Arn"
        assert asked["applicationId"] == "Application"
        assert asked["executionTimeoutMinutes"] * 60 < 7_800


def arguments(asked: dict[str, Any]) -> list[str]:
    listed: list[str] = asked["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    return listed


def test_what_was_made_from_what_is_recorded_beside_the_reports(machine: Machine) -> None:
    machine.run("night-7")
    (record,) = machine.services.of("PutObject")
    assert record["path"].split("?")[0] == "/ReportsBucket/runs/night-7.json"
    assert record["body"]["reports"] == ["billing", "backlog"]
    assert {name: each["folder"] for name, each in record["body"]["exports"].items()} == {
        name: folder(name) for name in ("usage", "messages", "directory")
    }


def test_a_repeated_call_has_the_token_of_its_execution(machine: Machine) -> None:
    machine.services.refusing = {"ExportTableToPointInTime": [400], "StartJobRun": [429]}
    assert machine.run("night-1").status == "SUCCEEDED"
    exports = machine.services.of("ExportTableToPointInTime")
    assert len(exports) == 4
    assert len({each["ClientToken"] for each in exports}) == 3
    jobs = machine.services.of("StartJobRun")
    assert len(jobs) == 3
    first = {each["clientToken"] for each in jobs}
    assert len(first) == 2
    machine.services.calls.clear()
    machine.run("night-2")
    assert first.isdisjoint(each["clientToken"] for each in machine.services.of("StartJobRun"))


def test_an_export_that_failed_ends_it_before_any_job(machine: Machine) -> None:
    failed = {"ExportStatus": "FAILED", "FailureCode": "S3AccessDenied", "FailureMessage": "denied"}
    machine.services.exporting["Usage"] = [failed]
    ending = machine.run()
    assert ending.status == "FAILED"
    assert ending.error == f"ExportsFailed: ExportFailed: {export_arn('Usage')} (usage): denied"
    assert machine.services.of("StartJobRun") == machine.services.of("PutObject") == []


def test_an_export_that_is_refused_ends_it_with_the_reason(machine: Machine) -> None:
    machine.services.refusing["ExportTableToPointInTime"] = [400] * 30
    ending = machine.run()
    assert ending.status == "FAILED"
    assert "slow down" in ending.error
    assert machine.services.of("StartJobRun") == []


def test_an_export_that_does_not_end_is_given_up_after_six_hours(machine: Machine) -> None:
    machine.services.exporting["Directory"] = [{"ExportStatus": "IN_PROGRESS"}]
    ending = machine.run()
    assert ending.status == "FAILED"
    assert ending.error.startswith("ExportsFailed: ExportTimedOut: ")
    assert "(directory)" in ending.error
    looks = [each["ExportArn"] for each in machine.services.of("DescribeExport")]
    assert looks.count(export_arn("Directory")) * 60 == pytest.approx(6 * 3_600, rel=0.01)
    assert machine.services.of("StartJobRun") == []


@pytest.mark.parametrize(("broken", "whole"), [("billing", "backlog"), ("backlog", "billing")])
def test_a_job_that_failed_is_named_and_the_other_report_is_made(
    machine: Machine, broken: str, whole: str
) -> None:
    machine.services.running[broken] = [
        {"state": "RUNNING"},
        {"state": "FAILED", "stateDetails": "exit code 2"},
    ]
    ending = machine.run()
    assert ending.status == "FAILED"
    assert ending.error == f"JobFailed: The {broken} job, run run-{broken}: FAILED: exit code 2"
    followed = {each["jobRunId"] for each in machine.services.of("GetJobRun")}
    assert followed == {"run-billing", "run-backlog"}
    assert machine.services.of("PutObject") == [], f"{whole} alone is no complete run"


def test_a_job_that_cannot_be_started_is_told_with_the_reason(machine: Machine) -> None:
    machine.services.refusing["StartJobRun"] = [429] * 30
    ending = machine.run()
    assert ending.status == "FAILED"
    assert "The billing job: " in ending.error
    assert "slow down" in ending.error
    assert machine.services.of("PutObject") == []


def test_a_job_that_does_not_end_is_given_up(machine: Machine) -> None:
    machine.let_jobs_last_a_second()
    machine.services.running["backlog"] = [{"state": "RUNNING"}]
    ending = machine.run()
    assert ending.status == "FAILED"
    assert ending.error == "ReportFailed: The backlog job: JobTimedOut: no end within 130 minutes"
    assert machine.services.of("PutObject") == []
