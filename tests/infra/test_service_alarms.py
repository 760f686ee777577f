"""The alarms of the service, reckoned: shares with a floor, and how many metrics they cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.infra.test_rollout_alarms import rings
from tests.infra.transformed import Transformed, transformed_of

FEW = {
    "ApiErrors",
    "FanOutLate",
    "NoSweep",
    "OldMessages",
    "ReportsFailed",
    "ReportsOld",
    "UnprocessedWaits",
}


def made(transformed: list[Path], **given: str) -> Transformed:
    told = {
        "Service": "cirrusmq",
        "AlarmLevel": "all",
        "Dashboard": "on",
        "DirectUrls": "true",
        "NightlyReports": "ENABLED",
    }
    return transformed_of(transformed, "alarms", **{**told, **given})


def alarms(transformed: list[Path], **given: str) -> dict[str, Any]:
    return made(transformed, **given).resources("AWS::CloudWatch::Alarm")


def share_rings(held: dict[str, Any], **data: int) -> bool:
    ids = {part["Id"]: 0 for part in held["Metrics"] if part["Id"] != "rings"}
    return rings(held, **{**ids, **data})


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        # Errors of the API ring as a share of what 99.9 % leave.
        ("ApiErrors", {"errors": 9, "calls": 9}, False),
        ("ApiErrors", {"errors": 6_000, "calls": 10_000_000}, False),  # six in ten thousand
        ("ApiErrors", {"errors": 20, "calls": 1_000}, True),
        ("ApiErrors", {"errors": 150_000, "calls": 10_000_000}, True),
        ("ApiErrorsSlow", {"errors": 29, "calls": 100}, False),
        ("ApiErrorsSlow", {"errors": 700, "calls": 100_000}, True),
        ("ApiErrorsSlow", {"errors": 500, "calls": 100_000}, False),
        # Errors of direct URLs ring by all four.
        (
            "DirectErrors",
            {"send_errors": 5, "delete_errors": 5, "send": 300, "receive": 300},
            True,
        ),
        ("DirectErrors", {"send_errors": 5, "delete_errors": 4, "send": 10}, False),
        ("DirectErrors", {"send_errors": 10, "receive": 1_000}, False),
        *[
            (name, {"throttles": throttles, "calls": calls}, expected)
            for name in ("Throttles", "DialectThrottles")
            for throttles, calls, expected in (
                (99, 10, False),
                (1_000, 1_000_000, False),
                (100, 5_000, True),
            )
        ],
        ("TablesThrottled", {"writes": 99}, False),
        ("TablesThrottled", {"writes": 500, "reads": 400, "write_units": 1_000_000}, False),
        ("TablesThrottled", {"writes": 500, "reads": 600, "write_units": 1_000_000}, True),
    ],
    ids=str,
)
def test_an_alarm_rings_for_a_share_above_a_floor(
    transformed: list[Path], name: str, data: dict[str, int], *, expected: bool
) -> None:
    if name == "DialectThrottles":
        dialects = transformed_of(transformed, "dialects")
        assert share_rings(dialects.resources("AWS::CloudWatch::Alarm")[name], **data) == expected
    else:
        assert share_rings(alarms(transformed)[name], **data) == expected


def test_the_used_share_of_the_quota_is_the_accounts_own(transformed: list[Path]) -> None:
    held = alarms(transformed)["QuotaNear"]
    parts = {part["Id"]: part for part in held["Metrics"]}
    assert parts["used"]["Expression"] == "running / SERVICE_QUOTA(counted)"
    counted = parts["counted"]["MetricStat"]["Metric"]
    assert counted["Namespace"] == "AWS/Usage"
    assert {"Name": "Resource", "Value": "ConcurrentExecutions"} in counted["Dimensions"]
    assert held["Threshold"] == 0.8


@pytest.mark.parametrize(
    ("level", "wanted"), [("few", FEW | {"DirectErrors"}), ("off", set[str]())]
)
def test_fewer_alarms_are_made_on_request(
    transformed: list[Path], level: str, wanted: set[str]
) -> None:
    assert set(alarms(transformed, AlarmLevel=level)) == wanted
    assert set(alarms(transformed)) > FEW
    assert "DirectErrors" not in alarms(transformed, DirectUrls="false")


def test_the_dashboard_stays_within_the_metrics_of_a_free_one(transformed: list[Path]) -> None:
    (held,) = made(transformed).resources("AWS::CloudWatch::Dashboard").values()
    widgets = json.loads(held["DashboardBody"])["widgets"]
    shown = [line for widget in widgets for line in widget["properties"]["metrics"]]
    assert len(shown) <= 50
    assert {str(line[1]) for line in shown} >= {"UrlRequestCount", "Url5xxCount", "Duration"}
    assert not made(transformed, Dashboard="off").resources("AWS::CloudWatch::Dashboard")
