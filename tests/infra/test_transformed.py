"""The permissions that are deployed, with those that SAM adds to the templates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from tests.infra.test_policies import STARS_BY_DESIGN
from tests.infra.tools import ROOT, TEMPLATES, deployment, of_type, texts
from tests.infra.transformed import path_of

import roles as review
from cirrusmq_local.cloud.cloudformation import read

# SAM gives each function every log of the account to write to, which a boundary takes back, traces
# to send, and one that may be in a VPC its network interfaces, which know no narrower resource.
ADDED_BY_SAM = {
    *("AWSLambdaBasicExecutionRole", "AWSXrayWriteOnlyAccess", "AWSXRayDaemonWriteAccess"),
    "AWSLambdaVPCAccessExecutionRole",
}
FUNCTIONS = [path.parent.name for path in ROOT.glob("functions/*/app.py")]
# SAM makes it for CodeDeploy, and takes no other trust policy for it.
WITHOUT_SOURCE = {"CodeDeployServiceRole"}


def referred(value: Any) -> Iterator[str]:
    """Names of resources and parameters that a value refers to, or waits for."""
    match value:
        case dict():
            for key, held in value.items():
                match key, held:
                    case "Ref", str(name):
                        yield name
                    case "Fn::GetAtt", [str(name), *_]:
                        yield name
                    case "Fn::GetAtt", str(name):
                        yield name.partition(".")[0]
                    case "Fn::Sub", _:
                        text, own = (held, {}) if isinstance(held, str) else held
                        names = set(re.findall(r"\$\{(\w+)", text)) - own.keys()
                        yield from names
                        yield from referred(own)
                    case "DependsOn", _:
                        yield from texts(held)
                    case _:
                        yield from referred(held)
        case list():
            for held in value:
                yield from referred(held)


@pytest.fixture(scope="module")
def roles(transformed: list[Path]) -> dict[str, Any]:
    return {
        name: resource
        for path in transformed
        for name, resource in of_type(read(path)["Resources"], "AWS::IAM::Role").items()
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


def test_only_logs_and_traces_are_added_to_the_templates_permissions(roles: dict[str, Any]) -> None:
    ready_made = {
        text.rpartition("/")[2]
        for name, role in roles.items()
        if name != "CodeDeployServiceRole"
        for held in role.get("ManagedPolicyArns", [])
        for text in texts(held)
        if "policy/" in text
    }
    assert ready_made <= ADDED_BY_SAM


def test_a_function_writes_no_log_but_the_services_own(
    transformed: list[Path], roles: dict[str, Any]
) -> None:
    of_functions = {
        name: role
        for name, role in roles.items()
        for trust in role["AssumeRolePolicyDocument"]["Statement"]
        if trust["Principal"]["Service"] in ("lambda.amazonaws.com", ["lambda.amazonaws.com"])
    }
    assert len(of_functions) == len(FUNCTIONS)
    bounds = [role["PermissionsBoundary"]["Ref"] for role in of_functions.values()]
    assert set(bounds) == {"OwnLogsAlone", "Boundary"}
    assert bounds.count("Boundary") == 3
    documents = [read(path) for path in transformed]
    for nested in ("OtherSdks", "Trial", "ReportPipeline"):
        given = documents[0]["Resources"][nested]["Properties"]["Parameters"]
        assert given["Boundary"] == {"Ref": "OwnLogsAlone"}
    policy = documents[0]["Resources"]["OwnLogsAlone"]["Properties"]["PolicyDocument"]
    logs = {
        (action, str(statement["Resource"]))
        for statement in policy["Statement"]
        for action in texts(statement["Action"])
        if action.startswith(("logs:", "*", "iam:", "sts:"))
    }
    own = str({"Fn::GetAtt": ["FunctionLogs", "Arn"]})
    assert logs == {("logs:CreateLogStream", own), ("logs:PutLogEvents", own)}
    assert documents[0]["Resources"]["FunctionLogs"]["Type"] == "AWS::Logs::LogGroup"


def test_a_boundary_leaves_the_permissions_of_functions(
    transformed: list[Path], roles: dict[str, Any]
) -> None:
    policy = read(transformed[0])["Resources"]["OwnLogsAlone"]["Properties"]["PolicyDocument"]
    (left,) = (each for each in policy["Statement"] if each["Sid"] == "WhatItsPoliciesAllow")
    left_there = set(left["Action"])
    bounded = {name: role for name, role in roles.items() if "PermissionsBoundary" in role}
    carried = [read(path_of(transformed, folder)) for folder in ("encryption", "bodies")]
    of_policies = {
        action
        for document in carried
        for held in of_type(document["Resources"], "AWS::IAM::ManagedPolicy").values()
        for statement in held["PolicyDocument"]["Statement"]
        for action in texts(statement["Action"])
    }
    used = {
        action for statement in statements(bounded) for action in texts(statement["Action"])
    } | of_policies
    assert used <= left_there
    for_sams_policies = {a for a in left_there if a.startswith(("ec2:", "xray:"))}
    assert left_there - used == for_sams_policies


def test_nothing_deployed_is_a_wildcard(roles: dict[str, Any]) -> None:
    wild = {
        statement["Sid"]
        for statement in statements(roles)
        for text in texts([statement["Action"], statement["Resource"]])
        if "*" in text
    }
    # As `test_policies.py` has them: SAM adds none.
    assert wild <= {statement for _, statement in STARS_BY_DESIGN}


def test_streams_and_schedules_start_the_alias_and_failures_are_told_of_it(
    transformed: list[Path],
) -> None:
    resources = read(transformed[0])["Resources"]
    mappings = of_type(resources, "AWS::Lambda::EventSourceMapping").values()
    started = sorted(held["FunctionName"]["Ref"] for held in mappings)
    assert started == ["FanOutAliaslive", "MeterAliaslive"]
    schedules = of_type(resources, "AWS::Events::Rule").values()
    assert [held["Targets"][0]["Arn"] for held in schedules] == [{"Ref": "SweepAliaslive"}]
    configured = of_type(resources, "AWS::Lambda::EventInvokeConfig").values()
    assert {held["Qualifier"] for held in configured} == {"live"}


HOOK = {"Fn::GetAtt": ["Trial", "Outputs.Hook"]}


def test_versions_are_tried_before_calls_are_shifted_to_them(transformed: list[Path]) -> None:
    resources = read(transformed[0])["Resources"]
    updates = {
        name.removesuffix("Aliaslive"): held["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
        for name, held in resources.items()
        if held["Type"] == "AWS::Lambda::Alias"
    }
    hooked = {name for name, held in updates.items() if "BeforeAllowTrafficHook" in held}
    assert hooked == {"Send", "Receive", "Delete"}
    told = resources["Trial"]["Properties"]["Parameters"]
    for name in hooked:
        assert updates[name]["BeforeAllowTrafficHook"] == HOOK
        # What the hook is told is what the alias turns to.
        (version,) = referred(resources[f"{name}Aliaslive"]["Properties"]["FunctionVersion"])
        assert resources[version]["Type"] == "AWS::Lambda::Version"
        assert told[f"{name}Version"] == {"Ref": version}
    assert told["Deployments"] == {"Ref": updates["Send"]["ApplicationName"]["Ref"]}


def test_codedeploy_may_call_the_hook_whatever_the_name_of_the_stack(
    transformed: list[Path],
) -> None:
    """Its role, which SAM makes, may call functions of this beginning alone."""
    resources = read(path_of(transformed, "trial"))["Resources"]
    (function,) = of_type(resources, "AWS::Lambda::Function").values()
    assert function["FunctionName"] == {"Fn::Sub": "CodeDeployHook_${Service}"}
    # It is called by its name, and so has no alias that would have to roll out first.
    kinds = {held["Type"] for held in resources.values()}
    assert kinds == {"AWS::Lambda::Function", "AWS::IAM::Role"}


def test_no_resource_waits_for_itself(transformed: list[Path]) -> None:
    """CloudFormation refuses a circle, and the hook is told versions that wait for it to run."""
    for path in transformed:
        resources = read(path)["Resources"]
        needs = {
            name: set(referred(held)) & resources.keys() - {name}
            for name, held in resources.items()
        }
        order = list(TopologicalSorter(needs).static_order())  # raises CycleError
        assert set(order) == resources.keys()
        if path == transformed[0]:
            (version,) = referred(resources["SendAliaslive"]["Properties"]["FunctionVersion"])
            assert order.index(version) < order.index("Trial") < order.index("SendAliaslive")


def test_the_review_list_has_the_roles_of_the_templates(
    transformed: list[Path], roles: dict[str, Any]
) -> None:
    assert [str(path.relative_to(ROOT)) for path in TEMPLATES] == list(review.TEMPLATES)
    page = review.page([read(path) for path in transformed])
    assert review.PAGE.read_text(encoding="utf-8") == page, "python -m infra.roles writes it anew"
    assert all(f"\n## {name}\n" in page for name in roles)
    for statement in statements(roles):
        assert statement.get("Sid", "(by SAM)") in page


def test_confirmations_name_the_domain_unless_another_url_is_given() -> None:
    def public_url(**given: str) -> str:
        stack = deployment(**given)
        push = stack.document["Resources"]["PushSlow"]["Properties"]
        return str(stack.resolve(push["Environment"]["Variables"]["PUBLIC_URL"]))

    named = {"DomainName": "mq.example.com"}
    assert public_url(**named) == "https://mq.example.com"
    assert public_url(**named, PublicUrl="https://cdn.example.com") == "https://cdn.example.com"
    assert "execute-api" in public_url()
