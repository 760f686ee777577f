"""Nightly reports: the state machine of the template, on moto's interpreter and faked services."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.infra.pipeline_services import EXPORT_ID, Services, export_arn, serve
from tests.infra.reports_machine import Machine

from cirrusmq_local.cloud.template import Template
from cirrusmq_reports import backlog_command, billing_command
from cirrusmq_reports.session import JAVA_CONFIGURATION, submit_parameters

JOBS = "s3://PipelineBucket/jobs"
REPORTS = "s3://ReportsBucket"


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


@pytest.mark.long
def test_reports_are_made_from_exports_of_all_three_tables(machine: Machine) -> None:
    machine.succeed()
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
    machine.succeed()
    names = [name for name, _ in machine.services.calls]
    assert max(i for i, name in enumerate(names) if name == "DescribeExport") < names.index(
        "StartJobRun"
    )
    assert names[-1] == "PutObject"
    # One wait for each look at an export, a minute long.
    assert machine.services.waits == [60] * names.count("DescribeExport") == [60] * 5


def test_each_job_gets_its_arguments(machine: Machine) -> None:
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
        (defaults,) = asked["configurationOverrides"]["applicationConfiguration"]
        assert defaults == {"classification": "spark-defaults", "properties": JAVA_CONFIGURATION}
        assert asked["executionRoleArn"] == "JobRole.Arn"
        assert asked["applicationId"] == "Application"
        assert asked["executionTimeoutMinutes"] * 60 < 7_800


def arguments(asked: dict[str, Any]) -> list[str]:
    listed: list[str] = asked["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    return listed


def test_each_job_proposes_and_its_proposal_is_published(machine: Machine) -> None:
    machine.run()
    published = {each["report"]: each for each in machine.services.of("Invoke")}
    assert set(published) == {"billing", "backlog"}
    for name, asked in published.items():
        given = arguments(machine.job(name))
        assert given[given.index("--propose") + 1] == asked["proposal"]
    assert published["billing"]["proposal"] != published["backlog"]["proposal"]


def published(machine: Machine, report: str) -> list[dict[str, Any]]:
    """The calls of `publish_report` for a report."""
    return [each for each in machine.services.of("Invoke") if each["report"] == report]


def test_an_outdated_run_is_made_again_with_a_proposal_of_its_own(machine: Machine) -> None:
    outdated = {"outcome": "outdated", "next": None}
    machine.services.publishing["billing"] = [outdated, {"outcome": "published", "next": None}]
    machine.succeed()
    jobs = [each for each in machine.services.of("StartJobRun") if each["name"] == "billing"]
    asked = published(machine, "billing")
    assert len(jobs) == len(asked) == len({each["clientToken"] for each in jobs}) == 2
    assert [arguments(each)[-1] for each in jobs] == [each["proposal"] for each in asked]


def test_an_always_outdated_run_fails(machine: Machine) -> None:
    machine.services.publishing["backlog"] = [{"outcome": "outdated", "next": None}]
    error = "ReportFailed: The backlog job: Outdated: other runs were published meanwhile"
    assert machine.fail() == error
    jobs = [each["name"] for each in machine.services.of("StartJobRun")]
    assert sorted(jobs) == ["backlog"] * 3 + ["billing"]


def test_documents_are_copied_in_as_many_calls_as_it_takes(machine: Machine) -> None:
    machine.services.publishing["billing"] = [
        {"outcome": "published", "next": 400},
        {"outcome": "published", "next": 800},
        {"outcome": "published", "next": None},
    ]
    machine.succeed()
    asked = published(machine, "billing")
    assert [each["next"] for each in asked] == [0, 400, 800]


def test_the_exports_behind_reports_are_recorded_beside_them(machine: Machine) -> None:
    machine.run("night-7")
    _, record = machine.services.of("PutObject")
    assert record["path"].split("?")[0] == "/ReportsBucket/runs/night-7.json"
    assert record["body"]["reports"] == ["billing", "backlog"]
    assert {name: each["folder"] for name, each in record["body"]["exports"].items()} == {
        name: folder(name) for name in ("usage", "messages", "directory")
    }


def test_a_repeated_call_has_the_token_of_its_execution(machine: Machine) -> None:
    machine.services.refusing = {"ExportTableToPointInTime": [400], "StartJobRun": [429]}
    machine.succeed("night-1")
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


def test_a_failed_export_ends_it_before_any_job(machine: Machine) -> None:
    failed = {"ExportStatus": "FAILED", "FailureCode": "S3AccessDenied", "FailureMessage": "denied"}
    machine.services.exporting["Usage"] = [failed]
    assert machine.fail() == f"ExportsFailed: ExportFailed: {export_arn('Usage')} (usage): denied"
    assert machine.services.of("StartJobRun") == machine.services.of("PutObject") == []


def test_a_refused_export_ends_it_with_the_reason(machine: Machine) -> None:
    machine.services.refusing["ExportTableToPointInTime"] = [400] * 30
    assert "slow down" in machine.fail()
    assert machine.services.of("StartJobRun") == []


@pytest.mark.long
def test_an_endless_export_is_given_up_after_six_hours(machine: Machine) -> None:
    machine.services.exporting["Directory"] = [{"ExportStatus": "IN_PROGRESS"}]
    error = machine.fail()
    assert error.startswith("ExportsFailed: ExportTimedOut: ")
    assert "(directory)" in error
    looks = [each["ExportArn"] for each in machine.services.of("DescribeExport")]
    assert looks.count(export_arn("Directory")) * 60 == pytest.approx(6 * 3_600, rel=0.01)
    assert machine.services.of("StartJobRun") == []


@pytest.mark.parametrize(("broken", "whole"), [("billing", "backlog"), ("backlog", "billing")])
def test_a_failed_job_is_named_and_the_other_report_is_made(
    machine: Machine, broken: str, whole: str
) -> None:
    machine.services.running[broken] = [
        {"state": "RUNNING"},
        {"state": "FAILED", "stateDetails": "exit code 2"},
    ]
    assert machine.fail() == f"JobFailed: The {broken} job, run run-{broken}: FAILED: exit code 2"
    followed = {each["jobRunId"] for each in machine.services.of("GetJobRun")}
    assert followed == {"run-billing", "run-backlog"}
    assert machine.services.of("PutObject") == [kept_chain(machine)], f"{whole} alone is no run"


def test_a_job_refused_at_its_start_is_told_with_the_reason(machine: Machine) -> None:
    machine.services.refusing["StartJobRun"] = [429] * 30
    error = machine.fail()
    assert "The billing job: " in error
    assert "slow down" in error
    assert machine.services.of("PutObject") == [kept_chain(machine)]


def test_an_endless_job_is_given_up(machine: Machine) -> None:
    machine.let_jobs_last_a_second()
    machine.services.running["backlog"] = [{"state": "RUNNING"}]
    assert machine.fail() == "ReportFailed: The backlog job: JobTimedOut: no end within 130 minutes"
    assert machine.services.of("PutObject") == [kept_chain(machine)]


def kept_chain(machine: Machine) -> dict[str, Any]:
    """The request that keeps the exports for the next night."""
    (request,) = (each for each in machine.services.of("PutObject") if "chain" in each["path"])
    return request


def nights(machine: Machine, count: int, first: int = 1) -> list[list[str]]:
    """What each night exports, table by table: the days of the window, or `whole`."""
    made = []
    for night in range(first, first + count):
        machine.services.calls.clear()
        machine.services.export_id = f"0170000000000{night}-aa"
        machine.succeed(f"night-{night}", at=f"2026-11-{night:02}T01:30:00Z")
        asked = machine.services.of("ExportTableToPointInTime")
        made.append([window(each) for each in sorted(asked, key=lambda each: each["TableArn"])])
    return made


def window(asked: dict[str, Any]) -> str:
    if asked["ExportType"] == "FULL_EXPORT":
        assert "IncrementalExportSpecification" not in asked
        return f"whole {day(asked['ExportTime'])}"
    wanted = asked["IncrementalExportSpecification"]
    assert wanted["ExportViewType"] == "NEW_AND_OLD_IMAGES"
    return f"{day(wanted['ExportFromTime'])} to {day(wanted['ExportToTime'])}"


def day(time: Any) -> str:
    moment = datetime.fromtimestamp(time, UTC) if isinstance(time, int | float) else time
    return str(moment)[8:10]


@pytest.mark.long
def test_usage_is_exported_whole_once_a_week_and_the_others_each_night(machine: Machine) -> None:
    made = nights(machine, 9)
    assert [usage for _, _, usage in made] == [
        "whole 01", "01 to 02", "02 to 03", "03 to 04", "04 to 05", "05 to 06", "06 to 07",
        "whole 08", "08 to 09",
    ]  # fmt: skip
    for night, (directory, messages, _) in enumerate(made, 1):
        assert directory == messages == f"whole {night:02}"


def test_jobs_read_the_last_whole_export_and_every_window_after_it(machine: Machine) -> None:
    nights(machine, 3)
    folders = [
        f"s3://PipelineBucket/exports/{{}}/AWSDynamoDB/0170000000000{night}-aa"
        for night in (1, 2, 3)
    ]
    options = billing_command._parser().parse_args(arguments(machine.job("billing")))
    assert options.exports == [folder.format("usage") for folder in folders]
    options = backlog_command._parser().parse_args(arguments(machine.job("backlog")))
    assert options.exports == [folders[-1].format("messages")]
    assert options.directories == [folders[-1].format("directory")]


@pytest.mark.long
def test_a_refused_window_becomes_a_whole_export(machine: Machine) -> None:
    nights(machine, 2)
    machine.services.calls.clear()
    machine.services.refusing["ExportTableToPointInTime"] = [400] * 15
    machine.succeed("night-9", at="2026-11-09T01:30:00Z")
    assert {window(each) for each in machine.services.of("ExportTableToPointInTime")[-3:]} == {
        "whole 09"
    }
    assert json.loads(machine.services.objects["/PipelineBucket/chain.json"])["nights"] == 0


@pytest.mark.few(1)
@pytest.mark.parametrize(("items", "executors"), [(5, 1), (20_000_000, 8), (200_000_000, 16)])
def test_jobs_are_as_large_as_the_last_whole_export(
    machine: Machine, items: int, executors: int
) -> None:
    machine.services.items = items
    nights(machine, 1)
    machine.services.items = 7
    nights(machine, 1, first=2)
    for job, wanted in (("billing", executors), ("backlog", 1)):
        parameters = machine.job(job)["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"]
        assert f"spark.dynamicAllocation.maxExecutors={wanted} " in parameters


def test_a_job_is_tagged_and_tried_twice_and_its_pages_are_encrypted(machine: Machine) -> None:
    machine.run()
    for job in ("billing", "backlog"):
        asked = machine.job(job)
        assert asked["retryPolicy"] == {"maxAttempts": 2}
        assert set(asked["tags"]) == {"stage", "account", "report"}
        monitoring = asked["configurationOverrides"]["monitoringConfiguration"]
        assert monitoring["managedPersistenceMonitoringConfiguration"] == {
            "enabled": True,
            "encryptionKeyArn": "Key.Arn",
        }
