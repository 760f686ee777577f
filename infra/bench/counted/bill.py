"""Monthly dollars of a whole deployment, idle or with messages, by its own templates.

Items billed by the month (alarms' metrics, dashboards, keys, secrets) and scheduled work (the
sweep, the nightly reports) are read from template.yaml and its nested templates, with the given
parameters. Sizes of log lines and the times of a sweep and of a job are assumed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cirrusmq_lambda import figures
from cirrusmq_local.cloud.cloudformation import StackTemplate
from cirrusmq_local.commands import prices
from cirrusmq_local.testing.world import World

from .waiting import MONTH_SECONDS

TEMPLATE = Path(__file__).parents[3] / "template.yaml"
NIGHTS = 30
TABLES = 3
SWEEP_SECONDS = 0.25
"""Assumed: an idle sweep, with about 40 reads that are partly sequential."""
SWEEP_LOG_BYTES = 300
"""Assumed: size of the log lines of an idle sweep."""
JOBS, JOB_SECONDS, WORKERS = 2, 120, 2
"""Assumed for a night, over small tables: a driver and an executor."""
WORKER_CPUS, WORKER_GB = 4, 16
NIGHT_STEPS = 120
"""Assumed: steps of the state machine of reports, whose rounds are a minute each."""
MIN = {
    "AlarmLevel": "off",
    "RolloutAlarms": "off",
    "NightlyReports": "DISABLED",
    "Dashboard": "off",
    "SweepSchedule": "rate(5 minutes)",
}
LEVELS: Mapping[str, Mapping[str, str]] = {
    "defaults": {},
    "AlarmLevel=all": {"AlarmLevel": "all"},
    "least": MIN,
}


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """The parts of a deployment that cost money without any use."""

    alarm_metrics: int
    dashboards: int
    keys: int
    secrets: int
    sweeps_an_hour: int
    nightly: bool


def fixed(given: Mapping[str, str] | None = None) -> Fixed:
    """Counts the parts in the templates, with these parameters instead of the defaults."""
    alarm_metrics = dashboards = keys = secrets = sweeps = 0
    nightly = False
    for kind, held in _resources(given or {}):
        match kind:
            case "AWS::CloudWatch::Alarm":
                metrics = [part for part in held.get("Metrics", ()) if "MetricStat" in part]
                alarm_metrics += len(metrics) or 1
            case "AWS::CloudWatch::Dashboard":
                dashboards += 1
            case "AWS::KMS::Key":
                keys += 1
            case "AWS::SecretsManager::Secret":
                secrets += 1
            case "AWS::Serverless::Function" | "AWS::Serverless::StateMachine":
                for event in (held.get("Events") or {}).values():
                    if event["Type"] == "Schedule":
                        sweeps += 60 // int(re.findall(r"\d+", event["Properties"]["Schedule"])[0])
                    elif event["Type"] == "ScheduleV2":
                        nightly = event["Properties"]["State"] == "ENABLED"
    return Fixed(
        alarm_metrics=alarm_metrics,
        dashboards=dashboards,
        keys=keys,
        secrets=secrets,
        sweeps_an_hour=sweeps,
        nightly=nightly,
    )


def _resources(given: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for stack in StackTemplate(TEMPLATE, "cirrusmq", "us-east-1", given).stacks():
        for held in stack.document["Resources"].values():
            if stack.made and ("Condition" not in held or stack.holds(held["Condition"])):
                yield held["Type"], stack.resolve(held.get("Properties") or {})


def idle_dollars(given: Mapping[str, str] | None = None, *, free: bool = False) -> dict[str, float]:
    """Returns dollars, by line, for a month without calls and stored messages.

    `free`: subtract CloudWatch's free tier, which nothing else in the account uses.
    """
    found = fixed(given)
    alarms = found.alarm_metrics - (prices.FREE_ALARM_METRICS if free else 0)
    dashboards = found.dashboards - (prices.FREE_DASHBOARDS if free else 0)
    sweeps = found.sweeps_an_hour * MONTH_SECONDS / 3_600
    reads, writes, told = idle_sweep()
    metrics = told - (prices.FREE_METRICS if free else 0)
    return {
        "key": found.keys * prices.KEY_MONTH,
        "secret": found.secrets * prices.SECRET_MONTH,
        "alarms": max(0, alarms) * prices.ALARM_METRIC_MONTH,
        "dashboard": max(0, dashboards) * prices.DASHBOARD_MONTH,
        "metrics": max(0, metrics) * prices.METRIC_MONTH,
        "sweep": sweeps
        * (
            (reads * prices.READ_UNITS_PER_MILLION + writes * prices.WRITE_UNITS_PER_MILLION)
            + prices.LAMBDA_REQUESTS_PER_MILLION
            + SWEEP_SECONDS * prices.CALL_GB * prices.LAMBDA_GB_SECOND * prices.MILLION
        )
        / prices.MILLION,
        "logs": log_dollars(sweeps * SWEEP_LOG_BYTES),
        "reports": report_dollars() if found.nightly else 0.0,
    }


@cache
def idle_sweep() -> tuple[float, float, int]:
    """Returns (read units, write units, reported metrics) of a sweep over an empty service."""
    world = World()
    world.client("alice")
    world.settle()
    told: set[str] = set()

    def note(values: figures.Values) -> None:
        told.update(figure.name for figure, number in values.items() if number)

    figures.send_to(note)
    try:
        for _ in range(3):
            world.clock.pass_seconds(60)
            world.run("sweep")
        told.clear()
        world.clock.pass_seconds(60)
        written, read = world.units(lambda: world.run("sweep"))
    finally:
        figures.send_to(None)
    return read, written, len(told)


def log_dollars(size: float) -> float:
    """Returns dollars for `size` bytes of log lines: ingested, and kept for a year."""
    gigabytes = size / prices.GB
    return gigabytes * (prices.LOG_GB + 12 * prices.LOG_PACKED * prices.LOG_GB_MONTH)


def report_dollars() -> float:
    """Returns dollars for a month's nightly reports over almost empty tables."""
    hours = NIGHTS * JOBS * JOB_SECONDS * WORKERS / 3_600
    jobs = hours * (WORKER_CPUS * prices.EMR_CPU_HOUR + WORKER_GB * prices.EMR_GB_HOUR)
    exports = NIGHTS * TABLES * prices.EXPORT_LEAST_GB * prices.EXPORT_GB
    steps = NIGHTS * (NIGHT_STEPS * prices.MACHINE_STEPS_PER_MILLION + prices.SCHEDULES_PER_MILLION)
    return jobs + exports + steps / prices.MILLION


def idle_rows() -> list[list[str]]:
    """Returns a row for each choice of parameters, with and without other use of the account."""
    found = []
    for name, given in LEVELS.items():
        for free in (True, False):
            lines = idle_dollars(given, free=free)
            amounts = (*lines.values(), sum(lines.values()))
            where = "free ones of CloudWatch" if free else "none free"
            found.append([f"{name}, {where}", *(f"{each:,.2f}" for each in amounts)])
    return found
