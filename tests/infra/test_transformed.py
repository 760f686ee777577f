"""The permissions that are deployed, with those that SAM adds to the templates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.infra.tools import ROOT, TEMPLATES, texts

import roles as review
from cirrusmq_local.cloud.cloudformation import StackTemplate

# SAM gives each function a log to write to and traces to send; both know no narrower resource.
ADDED_BY_SAM = {"AWSLambdaBasicExecutionRole", "AWSXrayWriteOnlyAccess", "AWSXRayDaemonWriteAccess"}
STARS_BY_DESIGN = {
    *("FindTheStream", "DeliverLogs", "FindLogs", "FollowExports", "FollowJobs", "ShowReports"),
    *("WriteExports", "Record", "ReadCodeAndExports", "ReadAndReplaceReports"),
}


# SAM makes it for CodeDeploy, and takes no other trust policy for it.
WITHOUT_SOURCE = {"CodeDeployServiceRole"}


@pytest.fixture(scope="module")
def roles(transformed: list[Path]) -> dict[str, Any]:
    return {
        name: resource["Properties"]
        for path in transformed
        for name, resource in yaml.safe_load(path.read_text())["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role"
    }


def statements(roles: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for role in roles.values():
        for policy in role.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                # One that only some deployments have.
                yield statement.get("Fn::If", ("", statement))[1]


def test_every_function_and_every_machine_has_a_role_of_its_own(
    roles: dict[str, Any], resources: dict[str, Any]
) -> None:
    needing = [
        name
        for name, resource in resources.items()
        if resource["Type"] in ("AWS::Serverless::Function", "AWS::Serverless::StateMachine")
    ]
    others = {"JobRole", "ReportsEachNightRole", "CodeDeployServiceRole"}
    assert set(roles) == {f"{name}Role" for name in needing} | others


def test_a_service_takes_a_role_for_this_account_alone(roles: dict[str, Any]) -> None:
    for name, role in roles.items():
        for statement in role["AssumeRolePolicyDocument"]["Statement"]:
            if name in WITHOUT_SOURCE:
                continue
            account = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
            assert statement["Condition"] == account, name


def test_only_logs_and_traces_are_added_to_what_the_template_allows(roles: dict[str, Any]) -> None:
    ready_made = {
        text.rpartition("/")[2]
        for name, role in roles.items()
        if name != "CodeDeployServiceRole"
        for held in role.get("ManagedPolicyArns", [])
        for text in texts(held)
        if "policy/" in text
    }
    assert ready_made <= ADDED_BY_SAM


def test_nothing_deployed_is_a_wildcard(roles: dict[str, Any]) -> None:
    wild = {
        statement["Sid"]
        for statement in statements(roles)
        for text in texts([statement["Action"], statement["Resource"]])
        if "*" in text
    }
    assert wild == STARS_BY_DESIGN


def test_streams_and_schedules_start_the_alias_and_what_failed_is_told_of_it(
    transformed: list[Path],
) -> None:
    resources = yaml.safe_load(transformed[0].read_text())["Resources"]

    def of_type(kind: str) -> list[dict[str, Any]]:
        return [held["Properties"] for held in resources.values() if held["Type"] == kind]

    mappings = of_type("AWS::Lambda::EventSourceMapping")
    assert {held["FunctionName"]["Ref"] for held in mappings} == {
        "FanOutAliaslive",
        "MeterAliaslive",
    }
    schedules = of_type("AWS::Events::Rule")
    assert [held["Targets"][0]["Arn"] for held in schedules] == [{"Ref": "SweepAliaslive"}]
    configured = of_type("AWS::Lambda::EventInvokeConfig")
    assert {held["Qualifier"] for held in configured} == {"live"}


def test_the_review_list_of_roles_is_that_of_the_templates(
    transformed: list[Path], roles: dict[str, Any]
) -> None:
    assert [str(path.relative_to(ROOT)) for path in TEMPLATES] == list(review.TEMPLATES)
    page = review.page([yaml.safe_load(path.read_text()) for path in transformed])
    assert review.PAGE.read_text(encoding="utf-8") == page, "python -m infra.roles writes it anew"
    assert all(f"\n## {name}\n" in page for name in roles)
    for statement in statements(roles):
        assert statement.get("Sid", "(by SAM)") in page


def test_the_api_may_have_a_name_and_no_url_of_its_own(transformed: list[Path]) -> None:
    resources = yaml.safe_load(transformed[0].read_text())["Resources"]
    assert resources["NamedApi"]["Condition"] == "HasDomain"
    (server,) = resources["Api"]["Properties"]["Body"]["servers"]
    endpoint = server["x-amazon-apigateway-endpoint-configuration"]
    assert endpoint == {"disableExecuteApiEndpoint": {"Fn::If": ["HasNoOwnUrl", True, False]}}


def test_confirmations_name_the_domain_unless_another_url_is_given() -> None:
    def public_url(**given: str) -> str:
        stack = StackTemplate(ROOT / "template.yaml", "cirrusmq", "local", given)
        push = stack.document["Resources"]["Push"]["Properties"]
        return str(stack.resolve(push["Environment"]["Variables"]["PUBLIC_URL"]))

    named = {"DomainName": "mq.example.com"}
    assert public_url(**named) == "https://mq.example.com"
    assert public_url(**named, PublicUrl="https://cdn.example.com") == "https://cdn.example.com"
    assert "execute-api" in public_url()
