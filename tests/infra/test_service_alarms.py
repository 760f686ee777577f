"""The alarms of the service, reckoned: shares with a floor, and how many metrics they cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.infra.test_rollout_alarms import rings
from tests.infra.transformed import Transformed

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
    (path,) = (each for each in transformed if each.parent.name == "alarms")
    told = {
        "Service": "cirrusmq",
        "AlarmLevel": "all",
        "Dashboard": "on",
        "DirectUrls": "true",
        "NightlyReports": "ENABLED",
    }
    return Transformed(path, {**told, **given})


def alarms(transformed: list[Path], **given: str) -> dict[str, Any]:
    return made(transformed, **given).resources("AWS::CloudWatch::Alarm")


def share_rings(held: dict[str, Any], **data: int) -> bool:
    ids = {part["Id"]: 0 for part in held["Metrics"] if part["Id"] != "rings"}
    return rings(held, **{**ids, **data})


def test_errors_of_the_api_ring_as_a_share_of_what_99_9_percent_leave(
    transformed: list[Path],
) -> None:
    fast = alarms(transformed)["ApiErrors"]
    assert not share_rings(fast, errors=9, calls=9)
    assert not share_rings(fast, errors=6_000, calls=10_000_000)  # six in ten thousand
    assert share_rings(fast, errors=20, calls=1_000)
    assert share_rings(fast, errors=150_000, calls=10_000_000)
    slow = alarms(transformed)["ApiErrorsSlow"]
    assert not share_rings(slow, errors=29, calls=100)
    assert share_rings(slow, errors=700, calls=100_000)
    assert not share_rings(slow, errors=500, calls=100_000)


def test_errors_of_direct_urls_ring_by_all_four(transformed: list[Path]) -> None:
    held = alarms(transformed)["DirectErrors"]
    assert share_rings(held, send_errors=5, delete_errors=5, send=300, receive=300)
    assert not share_rings(held, send_errors=5, delete_errors=4, send=10)
    assert not share_rings(held, send_errors=10, receive=1_000)
    assert "DirectErrors" not in alarms(transformed, DirectUrls="false")


def test_throttles_ring_as_a_share(transformed: list[Path]) -> None:
    held = alarms(transformed)["Throttles"]
    assert not share_rings(held, throttles=99, calls=10)
    assert not share_rings(held, throttles=1_000, calls=1_000_000)
    assert share_rings(held, throttles=100, calls=5_000)
    tables = alarms(transformed)["TablesThrottled"]
    assert not share_rings(tables, writes=99)
    assert not share_rings(tables, writes=500, reads=400, write_units=1_000_000)
    assert share_rings(tables, writes=500, reads=600, write_units=1_000_000)


def test_the_calls_of_other_sdks_ring_as_a_share_too(transformed: list[Path]) -> None:
    (path,) = (each for each in transformed if each.parent.name == "dialects")
    held = Transformed(path).resources("AWS::CloudWatch::Alarm")["DialectThrottles"]
    assert not share_rings(held, throttles=99, calls=10)
    assert not share_rings(held, throttles=1_000, calls=1_000_000)
    assert share_rings(held, throttles=100, calls=5_000)


def test_the_share_of_the_quota_that_is_used_is_the_accounts_own(transformed: list[Path]) -> None:
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
def test_fewer_alarms_are_made_where_fewer_are_asked_for(
    transformed: list[Path], level: str, wanted: set[str]
) -> None:
    assert set(alarms(transformed, AlarmLevel=level)) == wanted
    assert set(alarms(transformed)) > FEW


def test_the_dashboard_stays_within_the_metrics_of_a_free_one(transformed: list[Path]) -> None:
    (held,) = made(transformed).resources("AWS::CloudWatch::Dashboard").values()
    widgets = json.loads(held["DashboardBody"])["widgets"]
    shown = [line for widget in widgets for line in widget["properties"]["metrics"]]
    assert len(shown) <= 50
    assert {str(line[1]) for line in shown} >= {"UrlRequestCount", "Url5xxCount", "Duration"}
    assert not made(transformed, Dashboard="off").resources("AWS::CloudWatch::Dashboard")
