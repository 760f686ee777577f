"""The alarms that turn a rollout back, reckoned: what rings them, and what does not."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.infra.transformed import Transformed, transformed_of

from cirrusmq_local.testing import Client, World

IF_ASKED = {"CallDeploymentGroup", "PushSlowDeploymentGroup"}
"""Of functions whose own alarm is of AlarmLevel=all."""
CALLED = ("send", "receive", "delete", "publish", "subscribe", "manage")


def alarm(
    transformed: list[Path], name: str, folder: str = "rollouts", **given: str
) -> dict[str, Any]:
    """An alarm of a release, in a deployment with these parameters."""
    told = {"Service": "cirrusmq", "Release": "0123456789", "RefusedPercent": 5}
    template = transformed_of(transformed, folder, **{**told, "RolloutAlarms": "on", **given})
    found: dict[str, Any] = template.resources("AWS::CloudWatch::Alarm")[name]
    return found


def rings(held: dict[str, Any], **data: int) -> bool:
    """Whether an alarm's expression is above its threshold with these sums of a minute."""
    values: dict[str, Any] = {name: data.get(name, 0) for name in CALLED}
    values |= {"errors": 0, "refused": 0, **data}
    parts = {part["Id"]: part["Expression"] for part in held["Metrics"] if "Expression" in part}
    ids = {part["Id"] for part in held["Metrics"]}
    for name in sorted(parts, key=lambda each: each == "rings"):
        text = parts[name].replace(" AND ", " and ").replace(" OR ", " or ")
        assert set(re.findall(r"[a-z_]+", text)) - {"and", "or"} <= ids
        functions = {"IF": lambda one, yes, no: yes if one else no, "FILL": lambda held, _: held}
        values[name] = eval(text, {"__builtins__": {}}, {**functions, **values})
    assert held["ComparisonOperator"] == "GreaterThanThreshold"
    assert held["TreatMissingData"] == "notBreaching"
    return bool(values["rings"] > held["Threshold"])


def average_rings(held: dict[str, Any], *minutes: tuple[int, int]) -> bool:
    """Whether an alarm of an average rings after these minutes of (errors, calls)."""
    assert (held["Statistic"], held["MetricName"]) == ("Average", "Errors")
    assert held["TreatMissingData"] == "notBreaching"
    assert held["EvaluationPeriods"] >= len(minutes)
    shares = [errors / calls for errors, calls in minutes if calls]
    above = [share for share in shares if share > held["Threshold"]]
    return len(above) >= int(held["DatapointsToAlarm"])


def test_the_errors_of_a_version_turn_it_back_as_a_rate(transformed: list[Path]) -> None:
    held = alarm(transformed, "SendErrors", folder="")
    assert not average_rings(held, *[(1, 6_000_000)] * 5)  # a tenth of 60 million in a minute
    assert not average_rings(held, *[(300, 6_000_000)] * 5)
    assert not average_rings(held, (1, 10), (0, 10), (0, 10))  # too few to tell
    assert not average_rings(held, (10, 10), (0, 1_000))  # a minute of the store's
    assert average_rings(held, (10, 1_000), (10, 1_000))
    assert average_rings(held, (1, 100), (0, 100), (1, 100))
    assert not average_rings(held)


def test_the_errors_of_a_release_turn_it_back_among_all_calls(transformed: list[Path]) -> None:
    held = alarm(transformed, "NewRelease")
    all_calls = {"send": 20_000_000, "receive": 20_000_000, "delete": 20_000_000}
    assert not rings(held, errors=1, **all_calls)
    assert not rings(held, errors=20_000, **all_calls)  # one call in 3,000
    assert rings(held, errors=60_000, **all_calls)  # 1 % of a tenth
    assert not rings(held, errors=2, send=10)
    assert rings(held, errors=3)


def test_a_release_refusing_its_tenth_of_the_calls_goes_back(transformed: list[Path]) -> None:
    held = alarm(transformed, "NewRelease")
    assert rings(held, refused=1_000, send=5_000, receive=5_000)
    assert not rings(held, refused=400, send=5_000, receive=5_000)
    assert not rings(held, refused=9, send=10)
    usual = alarm(transformed, "NewRelease", RefusedPercent="50")
    assert not rings(usual, refused=1_000, send=5_000, receive=5_000)


def test_with_alarms_off_no_release_rings(transformed: list[Path]) -> None:
    off = {"RolloutAlarms": "off"}
    assert not Transformed(transformed[0], off).resources("AWS::CloudWatch::Alarm")
    released = alarm(transformed, "NewRelease", **off)
    assert not rings(released, errors=1_000, refused=1_000, send=1_000)
    assert sum("MetricStat" in part for part in released["Metrics"]) == 1


@pytest.mark.parametrize("watched", ["on", "off"])
@pytest.mark.parametrize("pages", ["on", "off"])
@pytest.mark.parametrize("level", ["all", "few"])
def test_rollouts_watch_existing_alarms(
    transformed: list[Path], watched: str, pages: str, level: str
) -> None:
    """Never an empty list, which would leave CodeDeploy with that of the deployment before."""
    made = Transformed(
        transformed[0], {"RolloutAlarms": watched, "Pages": pages, "AlarmLevel": level}
    )
    alarms = {*made.resources("AWS::CloudWatch::Alarm"), "ReleaseAlarms.Outputs.NewRelease"}
    groups = made.resources("AWS::CodeDeploy::DeploymentGroup")
    assert len(groups) >= 11
    for name, held in groups.items():
        named = [each["Name"] for each in held["AlarmConfiguration"]["Alarms"]]
        own = watched == "on" and (level == "all" or name not in IF_ASKED)
        assert len(named) == (2 if own else 1), name
        assert set(named) <= alarms, name


def test_an_alarm_is_made_anew_for_each_release(transformed: list[Path]) -> None:
    """One that is changed keeps its state: it would stop the release that mends the last one."""
    assert alarm(transformed, "NewRelease")["AlarmName"].endswith("-0123456789")
    names = []
    for name, held in Transformed(transformed[0]).resources("AWS::CloudWatch::Alarm").items():
        assert re.fullmatch(r"cirrusmq-[a-z_]+-\w+Version\w*[.]Version", held["AlarmName"]), name
        names.append(held["AlarmName"])
    assert len(set(names)) == len(names) == 12


def test_one_name_of_an_alarm_fits_whatever_the_name_of_the_stack(transformed: list[Path]) -> None:
    made = Transformed(transformed[0], stack="s" * 49)
    for held in made.resources("AWS::CloudWatch::Alarm").values():
        assert len(held["AlarmName"]) <= 255


class Refusals(logging.Handler):
    """Counts the lines that the alarm's filter counts."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self._count += record.getMessage() == "refused" and hasattr(record, "release")

    def __call__(self) -> int:
        """How many came since it was asked last."""
        count, self._count = self._count, 0
        return count


@pytest.fixture
def refusals() -> Iterator[Refusals]:
    held, logger = Refusals(), logging.getLogger("refusals")
    logger.addHandler(held)
    yield held
    logger.removeHandler(held)


def test_the_filters_read_fields_of_the_lines(transformed: list[Path]) -> None:
    filters = transformed_of(transformed, "rollouts").resources("AWS::Logs::MetricFilter")
    refused = filters["RefusalsOfRelease"]
    assert refused["FilterPattern"] == '{ $.message = "refused" && $.release = "*" }'
    assert '$.level = "ERROR"' in filters["ErrorsOfRelease"]["FilterPattern"]
    for name in ("RefusalsOfRelease", "ErrorsOfRelease"):
        (made,) = filters[name]["MetricTransformations"]
        assert made["Dimensions"] == [{"Key": "release", "Value": "$.release"}]


def test_a_stranger_stops_no_release(refusals: Refusals) -> None:
    """Refused calls count for the alarm where the key is one of the deployment's."""
    world = World()
    alice = world.client("alice", admin=True)
    alice.put("/queues/orders")
    key, _, secret = alice.authorization.removeprefix("Bearer ").partition(":")
    refusals()
    for stranger in ("", "Bearer CKaaaaaaaaaaaaaaaaaa:wrong", "Bearer x", f"Basic {key}:{secret}"):
        assert Client(world, stranger).get("/queues/orders").status == 401
        assert Client(world, stranger).get("/nothing").status == 404
        assert Client(world, stranger).post("/queues/orders/messages", {"x": 1}).status == 401
    assert refusals() == 0
    assert Client(world, f"Bearer {key}:wrong").get("/queues/orders").status == 401
    assert refusals() == 1
    assert alice.get("/queues/none").status == 404
    assert alice.put("/queues/orders", {"delay_seconds": -1}).status == 400
    assert refusals() == 2
    assert alice.get("/queues/orders").status == 200
    assert refusals() == 0
    world.engine.close()
