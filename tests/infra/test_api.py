"""The HTTP API as API Gateway imports it, from the transformed template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.infra.transformed import Transformed

from cirrusmq_local.cloud.stack_names import max_characters

DOMAIN = {"DomainName": "mq.example.com", "DisableExecuteApiEndpoint": "true"}
POLICY_BYTES = 20_480
"""Of a function's resource policy, which Lambda keeps (Lambda quotas)."""
HTTP_METHODS = {"get", "put", "post", "delete", "patch", "x-amazon-apigateway-any-method"}


def body_of(transformed: list[Path], **given: str) -> dict[str, Any]:
    api = Transformed(transformed[0], given).resources("AWS::ApiGatewayV2::Api")["Api"]
    assert "FailOnWarnings" not in api
    body: dict[str, Any] = api["Body"]
    return body


@pytest.mark.few(2)
@pytest.mark.parametrize("given", [{}, DOMAIN, {"Pages": "off"}], ids=str)
def test_its_body_gives_the_importer_no_warning(
    transformed: list[Path], given: dict[str, str]
) -> None:
    """What it is known to warn about: servers without a URL, paths, methods, parameters.

    It also warns that `$default` begins with no slash, as SAM writes it; that route works.
    """
    body = body_of(transformed, **given)
    assert all(server["url"] for server in body.get("servers", []))
    assert body["info"].keys() >= {"title", "version"}
    for path, methods in body["paths"].items():
        assert path == "$default" or path.startswith("/"), path
        assert path == "/" or not path.endswith("/"), path
        assert methods.keys() <= HTTP_METHODS, path
        for operation in methods.values():
            assert operation["x-amazon-apigateway-integration"]["uri"], path
            named = [each["name"] for each in operation.get("parameters", [])]
            parts = [part[1:-1] for part in path.split("/") if part.startswith("{")]
            assert sorted(named) == sorted(parts), path


def test_its_own_url_is_closed_only_with_another_name(transformed: list[Path]) -> None:
    assert "servers" not in body_of(transformed)
    assert "servers" not in body_of(transformed, DisableExecuteApiEndpoint="true")
    assert "servers" not in body_of(transformed, DomainName="mq.example.com")
    (server,) = body_of(transformed, **DOMAIN)["servers"]
    endpoint = server["x-amazon-apigateway-endpoint-configuration"]
    assert endpoint == {"disableExecuteApiEndpoint": True}
    assert server["url"] == "https://mq.example.com"


def test_links_lead_to_existing_routes(root: Path, transformed: list[Path]) -> None:
    """A path that ends in a slash is none; the files of pages are below a greedy route."""
    routes = body_of(transformed)["paths"].keys()
    assert {"/", "/console", "/console/{file+}", "/docs", "/docs/{file+}"} <= routes
    pages = root / "functions/pages"
    for page in (pages / "index.html", pages / "console/app.js", root / "infra/manual/theme"):
        files = [page] if page.is_file() else sorted(page.glob("*.html"))
        for file in files:
            text = file.read_text(encoding="utf-8")
            assert 'console/"' not in text
            assert 'docs/"' not in text


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_each_function_has_room_in_its_policy_for_its_routes(
    root: Path, transformed: list[Path], partition: str
) -> None:
    """Each permission is a statement of the function's own policy, which Lambda bounds."""
    longest, _ = max_characters(root / "template.yaml")
    stack = "s" * longest
    template = Transformed(transformed[0], stack=stack, partition=partition)
    policies: dict[str, list[Any]] = {}
    for name, held in template.resources("AWS::Lambda::Permission").items():
        region, account = template.resolve({"Fn::Sub": "${AWS::Region}:${AWS::AccountId}"}).split(
            ":"
        )
        function = f"arn:{partition}:lambda:{region}:{account}:function:{'f' * 64}:live"
        source = str(held.get("SourceArn", "")).replace(":Api/", f":{'a' * 10}/")
        statement = {
            # CloudFormation makes the id of stack, logical id and twelve letters.
            "Sid": f"{stack}-{name}-{'X' * 12}",
            "Effect": "Allow",
            "Principal": {"Service": held["Principal"]},
            "Action": held["Action"],
            "Resource": function,
            "Condition": {"ArnLike": {"AWS:SourceArn": source}},
        }
        policies.setdefault(held["FunctionName"], []).append(statement)
    assert policies.keys() >= {"ManageAliaslive", "ReceiveAliaslive"}
    for function, statements in policies.items():
        policy = {"Version": "2012-10-17", "Id": "default", "Statement": statements}
        assert len(json.dumps(policy)) < POLICY_BYTES / 2, function
