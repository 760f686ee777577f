"""Calls made up from the OpenAPI document, legal and not: the service answers as the document says.

Schemathesis makes the calls and reads the answers. The service is in memory, behind the events
that the gateway makes of requests; the long run also asks a stack over HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
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
from tests.stack import Start

URL = "http://service"
REFUSED = [400, 403, 404, 405, 409, 413, 415]
FEW, SOME, MANY = 5, 40, 1_000


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


def calls_of(call: Call, known: Mapping[str, str]) -> st.SearchStrategy[Case[Any]]:
    """Legal and illegal calls, of existing resources and of names that are made up."""
    operation = SCHEMA[call.route][call.method]
    names = {name: text for name, text in known.items() if f"{{{name}}}" in call.route}
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    of_known = [operation.as_strategy(mode, path_parameters=names) for mode in modes]
    made_up = [operation.as_strategy(mode) for mode in modes] if names else []
    return st.one_of(*of_known, *made_up)


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


def fuzz(
    call: Call, known: Mapping[str, str], ask: Callable[[Case[Any]], Response], number: int
) -> None:
    @settings(
        max_examples=number,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(calls_of(call, known))
    def answered_as_described(case: Case[Any]) -> None:
        answer = ask(case)
        case.validate_response(answer, checks=WANTED)
        if answer.status_code >= 400:
            problem = json.loads(answer.content)
            assert problem["code"] in CODES
            assert problem["status"] == answer.status_code

    answered_as_described()


def fuzz_in_memory(call: Call, number: int) -> None:
    stage = set_stage()
    fuzz(call, names_for(stage, call), partial(send, stage), number)
    stage.world.engine.close()


@pytest.mark.few(15)
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_calls_are_answered_as_the_document_says(call: Call) -> None:
    fuzz_in_memory(call, FEW)


@pytest.mark.long
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_thousands_of_calls_are_answered_as_the_document_says(call: Call) -> None:
    fuzz_in_memory(call, MANY)


@pytest.mark.long
def test_a_running_stack_answers_as_the_document_says(start: Start) -> None:
    """Through sockets and the gateway; time runs fast there, since made-up calls wait long."""
    up = start("--time-scale", "600")
    names = {"queue": "orders", "topic": "news", "subscription": "all", "receiver": "copy"}
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = up.client().headers["authorization"]
        for call in CALLS:
            for path in ("/queues/orders", "/queues/orders/receivers/copy", "/topics/news"):
                session.put(up.url + path)
            pull = {"protocol": "pull"}
            session.put(f"{up.url}/topics/news/subscriptions/all", json=pull)
            ask = partial(Case.call, base_url=up.url, session=session)
            fuzz(call, {**names, "account": "carol", "id": "none", "asset": "none"}, ask, SOME)
