"""What a parameter changes in the deployment, read from the transformed template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.infra.transformed import Transformed
from tests.infra.transformed import transformed_of as of

TEMPLATES_THAT_TRACE = ("", "reports", "trial", "dialects")


def traced(template: Transformed) -> set[str]:
    functions = template.resources("AWS::Lambda::Function")
    modes = {held["TracingConfig"]["Mode"] for held in functions.values()}
    machines = template.resources("AWS::StepFunctions::StateMachine")
    return modes | {str(held["TracingConfiguration"]["Enabled"]) for held in machines.values()}


@pytest.mark.parametrize("folder", TEMPLATES_THAT_TRACE)
def test_nothing_is_traced_unless_it_is_asked_for(transformed: list[Path], folder: str) -> None:
    assert traced(of(transformed, folder, Tracing="off")) <= {"PassThrough", "False"}
    assert traced(of(transformed, folder, Tracing="on")) <= {"Active", "True"}
    if not folder:
        assert traced(of(transformed)) == {"PassThrough", "False"}


def test_a_line_of_the_access_log_is_short_full_or_none(transformed: list[Path]) -> None:
    def log(**given: str) -> Any:
        (stage,) = of(transformed, **given).resources("AWS::ApiGatewayV2::Stage").values()
        return stage.get("AccessLogSettings")

    assert log(AccessLog="off") is None
    short, full = (log(AccessLog=name)["Format"] for name in ("short", "full"))
    assert log()["Format"] == short
    assert len(short) < 0.6 * len(full)
    for line in (short, full):
        assert "\n" not in line
        assert json.loads(line)["status"] == "$context.status"  # the filters look for a text
        assert "header" not in line  # one of them has the secret


def test_clients_with_a_certificate_alone_reach_a_domain(transformed: list[Path]) -> None:
    def asked(store: str) -> Any:
        made = of(transformed, "domain", TrustStore=store).resources(
            "AWS::ApiGatewayV2::DomainName"
        )
        return made["Domain"].get("MutualTlsAuthentication")

    assert asked("") is None
    assert asked("s3://bucket/ca.pem") == {"TruststoreUri": "s3://bucket/ca.pem"}


def holds(transformed: list[Path], rule: str, **given: Any) -> bool:
    """Whether CloudFormation takes the parameters by one of the template's rules."""
    template = of(transformed, **given)
    held = template.document["Rules"][rule]
    asked = held.get("RuleCondition")
    if asked is not None and not template.true(asked):
        return True
    return all(template.true(each["Assert"]) for each in held["Assertions"])


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"DirectUrls": "true"},
        {"DomainName": "mq.example.com"},
        {"DomainName": "mq.example.com", "DisableExecuteApiEndpoint": "true", "DirectUrls": "true"},
    ],
    ids=str,
)
def test_mutual_tls_has_no_way_round(transformed: list[Path], given: dict[str, str]) -> None:
    rule, store = "MutualTlsHasNoWayRound", {"TrustStore": "s3://bucket/ca.pem"}
    closed = {"DomainName": "mq.example.com", "DisableExecuteApiEndpoint": "true"}
    assert holds(transformed, rule, **given)
    assert not holds(transformed, rule, **store, **given)
    assert holds(transformed, rule, **store, **closed)


def test_deliveries_may_go_out_from_a_vpc(transformed: list[Path]) -> None:
    def network(**given: Any) -> dict[str, Any]:
        functions = of(transformed, **given).resources("AWS::Lambda::Function")
        return {name: held["VpcConfig"] for name, held in functions.items() if "VpcConfig" in held}

    assert network() == {}
    inside = {"PushSubnets": ["subnet-1", "subnet-2"], "PushSecurityGroups": ["sg-1"]}
    expected = {"SubnetIds": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]}
    assert network(**inside) == {"Push": expected, "PushSlow": expected}
    rule = "DeliveriesInAVpcHaveTheirGroups"
    assert holds(transformed, rule, **inside)
    assert holds(transformed, rule)
    assert not holds(transformed, rule, PushSubnets=["subnet-1"])


@pytest.mark.parametrize(
    ("parameter", "bucket", "rule", "declared"),
    [
        # A whole export is a week old at most.
        ("ExportDays", "PipelineBucket", "ExportsEnd", {"MinValue": 8, "Default": 14}),
        ("InvoiceDays", "ReportsBucket", "DocumentsEnd", {"Default": 3_650}),
    ],
)
def test_exports_are_kept_as_long_as_a_night_needs_them_and_documents_for_ten_years(
    transformed: list[Path], parameter: str, bucket: str, rule: str, declared: dict[str, int]
) -> None:
    made = of(transformed, "reports", **{parameter: 4_000}).resources("AWS::S3::Bucket")[bucket]
    (held,) = (each for each in made["LifecycleConfiguration"]["Rules"] if each["Id"] == rule)
    assert held["ExpirationInDays"] == 4_000
    assert rule != "DocumentsEnd" or held["Prefix"] == "documents/"
    assert declared.items() <= of(transformed).document["Parameters"][parameter].items()


def test_single_usage_records_are_kept_for_thirteen_months(transformed: list[Path]) -> None:
    template = of(transformed, "reports", LedgerMonths=20)
    machines = template.resources("AWS::StepFunctions::StateMachine").values()
    (machine,) = (each for each in machines if "LedgerMonths" in each["DefinitionSubstitutions"])
    assert machine["DefinitionSubstitutions"]["LedgerMonths"] == 20
    assert of(transformed).document["Parameters"]["LedgerMonths"]["Default"] == 13
