"""What a deployment costs that nobody uses, counted in its templates."""

from __future__ import annotations

import re

import pytest

from bench.counted import bill
from cirrusmq_local.commands import prices


def test_an_idle_deployment_costs_at_most_5_dollars_and_2_by_parameters() -> None:
    assert sum(bill.idle_dollars(free=True).values()) <= 5
    assert sum(bill.idle_dollars(bill.MIN).values()) <= 2


def test_its_fixed_parts_are_those_of_the_templates() -> None:
    """Counted another way: by the text of the templates."""
    folder = bill.TEMPLATE.parent
    text = "".join(path.read_text() for path in folder.glob("infra/*/template.yaml"))
    for kind, counted in (("KMS::Key", "keys"), ("SecretsManager::Secret", "secrets")):
        written = len(re.findall(rf"Type: AWS::{kind}\n", text))
        assert getattr(bill.fixed(), counted) == written == 1
    kept = r"    Condition: (?:Rollouts|Pages)GoBack\n"  # of a function's alarm at any level
    versions = re.findall(
        rf"^  \w+Errors:\n    Type: AWS::CloudWatch::Alarm\n{kept}", text_of_top(), re.M
    )
    alarms = (folder / "infra/alarms/template.yaml").read_text()
    few = re.findall(r"    Condition: (?:Any|Nightly)\n", alarms)
    # Of the few one is of two metrics, the release's alarm is of eight.
    assert bill.fixed().alarm_metrics == len(versions) + 8 + len(few) + 1
    assert bill.fixed(bill.MIN).alarm_metrics == 1


def text_of_top() -> str:
    return bill.TEMPLATE.read_text()


def test_each_parameter_saves_its_line() -> None:
    usual = bill.idle_dollars()
    saved = {
        "alarms": {"AlarmLevel": "off"},
        "dashboard": {"Dashboard": "off"},
        "sweep": {"SweepSchedule": "rate(5 minutes)"},
        "reports": {"NightlyReports": "DISABLED"},
    }
    for line, given in saved.items():
        found = bill.idle_dollars(given)
        assert found[line] < usual[line], line
    assert usual["key"] + usual["secret"] == pytest.approx(prices.KEY_MONTH + prices.SECRET_MONTH)
    assert usual["metrics"] == 0
