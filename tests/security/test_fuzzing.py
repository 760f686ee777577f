"""Calls made up from the OpenAPI document, legal and not: the service answers as the document says.

Schemathesis makes the calls and reads the answers; the service is in memory, behind the events
that the gateway makes of requests.
"""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, CheckFunction, load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.core.transport import Response
from tests.security.contract import CALLS, CODES, DOCUMENT, Call, Stage, names_for, set_stage

URL = "http://service"
REFUSED = [400, 403, 404, 405, 409, 413, 415]
FEW, MANY = 40, 1_000


def read_document() -> schemathesis.BaseSchema:
    """The document without its keys: every call here is made with a good one."""
    document = json.loads(json.dumps(DOCUMENT))
    document |= {"servers": [{"url": URL}], "security": []}
    for methods in document["paths"].values():
        for described in methods.values():
            described.pop("security", None)
    config = {"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}}
    return schemathesis.openapi.from_dict(document, config=SchemathesisConfig.from_dict(config))


load_all_checks()
SCHEMA = read_document()
WANTED = cast(
    "list[CheckFunction]",
    CHECKS.get_by_names(
        [
            "not_a_server_error",
            "status_code_conformance",
            "content_type_conformance",
            "response_schema_conformance",
            "negative_data_rejection",
        ]
    ),
)


def calls_of(stage: Stage, call: Call) -> st.SearchStrategy[Case[Any]]:
    """Legal and illegal calls, of what is there and of names that are made up."""
    operation = SCHEMA[call.route][call.method]
    names = {
        name: text for name, text in names_for(stage, call).items() if f"{{{name}}}" in call.route
    }
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    known = [operation.as_strategy(mode, path_parameters=names) for mode in modes] if names else []
    return st.one_of(*known, *(operation.as_strategy(mode) for mode in modes))


def send(stage: Stage, case: Case[Any]) -> Response:
    """Hand the service the call, as the gateway would."""
    asked = requests.Request(**case.as_transport_kwargs(base_url=URL)).prepare()
    path, _, query = asked.path_url.partition("?")
    body = asked.body or b""
    assert asked.method
    assert isinstance(body, str | bytes)
    headers = {str(name): str(value) for name, value in asked.headers.items()}
    reply = stage.world.call(
        asked.method,
        path,
        body.encode() if isinstance(body, str) else body,
        headers | {"Authorization": stage.owner.authorization},
        query,
    )
    return Response(
        status_code=reply.status,
        headers={name: [value] for name, value in reply.headers.items()},
        content=reply.text.encode(),
        request=asked,
        elapsed=0,
        verify=False,
    )


def fuzz(call: Call, number: int) -> None:
    stage = set_stage()

    @settings(
        max_examples=number,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(calls_of(stage, call))
    def answered_as_described(case: Case[Any]) -> None:
        answer = send(stage, case)
        case.validate_response(answer, checks=WANTED)
        if answer.status_code >= 400:
            problem = json.loads(answer.content)
            assert problem["code"] in CODES
            assert problem["status"] == answer.status_code

    answered_as_described()
    stage.world.engine.close()


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_calls_are_answered_as_the_document_says(call: Call) -> None:
    fuzz(call, FEW)


@pytest.mark.long
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_thousands_of_calls_are_answered_as_the_document_says(call: Call) -> None:
    fuzz(call, MANY)
