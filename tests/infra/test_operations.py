"""Alarms, the dashboard and rollouts: they watch existing metrics, and notify an operator."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.infra.tools import of_type

from cirrusmq_lambda import figures
from cirrusmq_local.cloud.template import Template

OWN = "CirrusMQ/cirrusmq"
# CodeDeploy waits for what it reports, and a deployment fails by it.
HOOK = "CodeDeployHook_cirrusmq"
WATCHED_IF_ASKED = {"Call", "PushSlow"}
"""Functions whose own alarm of rollouts is of AlarmLevel=all."""
# So does the state machine of the reports, whose failures have an alarm.
AWAITED = {HOOK, "cirrusmq-publish_report"}
DIALECTS = "cirrusmq-dialects"
"""In deployments that have them; its alarms are made with it."""
# Each of these failures has an alarm, of any name.
WATCHED = {
    "cirrusmq": "BudgetsExceeded UsageSetAside",
    "AWS/ApiGateway": "5xx Count",
    "AWS/DynamoDB": "ConsumedReadCapacityUnits ConsumedWriteCapacityUnits ReadThrottleEvents"
    " WriteThrottleEvents",
    "AWS/Lambda": "ConcurrentExecutions Errors Invocations IteratorAge Throttles Url5xxCount"
    " UrlRequestCount",
    "AWS/SQS": "ApproximateNumberOfMessagesVisible",
    "AWS/States": "ExecutionsFailed ExecutionsSucceeded ExecutionsTimedOut",
    "AWS/Usage": "ResourceCount",
    OWN: "cirrusmq_messages_dead_lettered_total cirrusmq_oldest_message_age_seconds"
    " cirrusmq_open_breakers cirrusmq_release_errors_total cirrusmq_release_refusals_total"
    " cirrusmq_stuck_schedules cirrusmq_sweep_behind_seconds"
    " cirrusmq_undecided_half_messages_total cirrusmq_unlawful_writes_total",
}


@pytest.fixture(scope="module")
def alarms(resources: dict[str, Any]) -> dict[str, Any]:
    return of_type(resources, "AWS::CloudWatch::Alarm")


OF_JOBS = {"BudgetsExceeded", "UsageSetAside"}
SHOWN_ALONE = {"UnusualHours", "ForecastOfTheMonth"}
"""Figures of the reports, which somebody has to judge: what is dear is no fault."""
BY_RELEASE = {"cirrusmq_release_errors_total", "cirrusmq_release_refusals_total"}
"""Counted in the log of an account alone: one machine has one release."""


def metrics(alarm: dict[str, Any]) -> list[tuple[str, str, dict[str, str]]]:
    """Namespace, name and dimensions of an alarm's metrics."""
    parts = [
        part["MetricStat"]["Metric"] for part in alarm.get("Metrics", []) if "MetricStat" in part
    ]
    return [
        (
            part["Namespace"],
            part["MetricName"],
            {held["Name"]: held["Value"] for held in part.get("Dimensions", [])},
        )
        for part in parts or [alarm]
    ]


def test_whatever_goes_wrong_has_an_alarm(alarms: dict[str, Any]) -> None:
    found = {(space, name) for alarm in alarms.values() for space, name, _ in metrics(alarm)}
    assert found == {(space, name) for space, names in WATCHED.items() for name in names.split()}


def test_every_alarm_is_told_and_has_a_description(alarms: dict[str, Any]) -> None:
    for name, alarm in alarms.items():
        assert alarm["AlarmActions"] == alarm["OKActions"] == ["Alarms"], name
        assert len(alarm["AlarmDescription"]) > 20
        # A service without calls is no alarm; a sweep or a report that no longer runs is one. On
        # the day of deployment neither has run: no change of state, and nothing is told.
        if name in ("NoSweep", "ReportsOld"):
            assert alarm["TreatMissingData"] == "missing"
            assert alarm["InsufficientDataActions"] == ["Alarms"]
        else:
            assert alarm["TreatMissingData"] == "notBreaching", name
            assert "InsufficientDataActions" not in alarm


def test_our_own_figures_are_told_by_the_functions(
    resources: dict[str, Any], alarms: dict[str, Any]
) -> None:
    filtered = {
        made["MetricName"]
        for held in of_type(resources, "AWS::Logs::MetricFilter").values()
        for made in held["MetricTransformations"]
    }
    watched = {
        name for alarm in alarms.values() for space, name, _ in metrics(alarm) if space == OWN
    }
    logged = {figure.name for figure in figures.LOGGED}
    assert filtered == SHOWN_ALONE | OF_JOBS | BY_RELEASE | logged
    told = {figure.name for figure in (*figures.TOLD, *figures.LOGGED)}
    assert watched <= told | BY_RELEASE


def test_figures_are_told_in_the_namespace_of_the_alarms(template: Template) -> None:
    assert template.environment()["POWERTOOLS_METRICS_NAMESPACE"] == OWN


def test_throttles_are_those_of_all_functions_of_the_account(alarms: dict[str, Any]) -> None:
    watched = metrics(alarms["Throttles"])
    assert watched == [("AWS/Lambda", name, {}) for name in ("Throttles", "Invocations")]


def test_every_function_is_watched(template: Template, alarms: dict[str, Any]) -> None:
    watched = {
        dimensions["FunctionName"]
        for alarm in alarms.values()
        for space, name, dimensions in metrics(alarm)
        if (space, name) == ("AWS/Lambda", "Errors")
    }
    assert watched == {function.name for function in template.functions} - AWAITED | {DIALECTS}


def test_lost_usage_is_announced_hours_before(
    resources: dict[str, Any], alarms: dict[str, Any]
) -> None:
    given_up = resources["CountParcels"]["Properties"]["MaximumRecordAgeInSeconds"]
    assert alarms["UsageAtRisk"]["Threshold"] / 1000 == given_up / 2


def test_both_readers_of_the_stream_and_both_machines_are_watched(
    template: Template, alarms: dict[str, Any]
) -> None:
    def watched(metric: str, dimension: str) -> set[str]:
        return {
            dimensions[dimension]
            for alarm in alarms.values()
            for _, name, dimensions in metrics(alarm)
            if name == metric
        }

    assert watched("IteratorAge", "FunctionName") == {each.function for each in template.streams}
    machines = {machine.logical_id for machine in template.machines}
    assert watched("ExecutionsFailed", "StateMachineArn") == machines


def test_a_sum_stays_within_the_ten_metrics_of_an_alarm(alarms: dict[str, Any]) -> None:
    assert all(len(alarm.get("Metrics", [])) <= 11 for alarm in alarms.values())


def test_new_code_goes_back_when_its_alarm_rings(
    template: Template, document: dict[str, Any], alarms: dict[str, Any]
) -> None:
    """Every function rolls: all share tables, and a version meets what another one has written."""
    shared = document["Globals"]["Function"]
    assert shared["AutoPublishAlias"] == "live"
    assert shared["DeploymentPreference"]["Type"].startswith("Canary")
    functions = of_type(document["Resources"], "AWS::Serverless::Function")
    assert {held["FunctionName"] for held in functions.values()} == {
        each.name for each in template.functions
    } - AWAITED
    for name, held in functions.items():
        # SAM takes it from no globals.
        assert "AutoPublishCodeSha256" in held, name
        *own_alarms, release = held["DeploymentPreference"]["Alarms"]
        assert release == "NewRelease"
        assert own_alarms == ([] if name in WATCHED_IF_ASKED else [f"{name}Errors"])
        if not own_alarms:
            continue
        (own,) = own_alarms
        function = held["FunctionName"]
        for _, metric, dimensions in metrics(alarms[own]):
            assert metric == "Errors"
            assert dimensions == {
                "FunctionName": function,
                "Resource": f"{function}:live",
                "ExecutedVersion": f"{name}.Version.Version",
            }


def test_refusals_are_counted_in_the_log_of_calls(resources: dict[str, Any]) -> None:
    """Their status is a text there, and what is throttled says nothing of the code."""
    filters = of_type(resources, "AWS::Logs::MetricFilter")
    assert filters["Calls"]["FilterPattern"] == '{ $.status = "*" }'
    assert filters["Refusals"]["FilterPattern"] == '{ $.status = "4*" && $.status != "429" }'
    assert {filters[name]["LogGroupName"] for name in ("Calls", "Refusals")} == {"AccessLogs"}


def test_functions_without_a_waiting_caller_park_failed_events(
    template: Template, resources: dict[str, Any]
) -> None:
    behind_the_api = {route.function for route in template.routes}
    readers = {stream.function for stream in template.streams}
    scheduled = {schedule.function for schedule in template.schedules}
    for function in template.functions:
        if function.name in behind_the_api | readers | scheduled | AWAITED:
            continue
        events = resources[function.logical_id]["Properties"]["EventInvokeConfig"]
        destination = events["DestinationConfig"]["OnFailure"]["Destination"]
        assert destination == "Unprocessed.Arn", function.name


def test_the_dashboard_shows_the_functions(resources: dict[str, Any], template: Template) -> None:
    (dashboard,) = of_type(resources, "AWS::CloudWatch::Dashboard").values()
    body = dashboard["DashboardBody"]
    widgets = json.loads(body)["widgets"]
    assert len({(widget["x"], widget["y"]) for widget in widgets}) == len(widgets)
    for function in template.functions:
        assert f'"{function.name}"' in body or function.name in AWAITED
    for told in ("messages_dead_lettered_total", "oldest_message_age_seconds", "stuck_schedules"):
        assert f'"cirrusmq_{told}", {{"stat"' in body
