"""Policies, filters and posts in the document are those that the service takes and makes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi_schema_validator import OAS31Validator
from tests.unit.topics import subscription

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.filters.selection import MEMBERS, Source, compile_filter
from cirrusmq.model.message import Message
from cirrusmq.model.retry import DEFAULTS, parse_retry
from cirrusmq.model.topic import ContentFormat
from cirrusmq.webhooks import requests
from cirrusmq_local.testing.world import World
from openapi.fields import REQUESTS, tells

ROOT = Path(__file__).parents[2]
SIGNED: Any = {"secrets": ["whsec_" + "A" * 32], "request_id": "1", "now_s": 1_795_000_000}
NUMBERS = st.sampled_from([-1, 0, 0.005, 0.01, 0.5, 1, 30, 31, 43_200, 43_201, 10**6, 10**6 + 1])
RETRIES = st.fixed_dictionaries(
    {"policy": st.sampled_from([*DEFAULTS, "other"])},
    optional={
        "max_retries": NUMBERS,
        "interval_seconds": NUMBERS,
        "jitter": NUMBERS,
        "waits": st.lists(NUMBERS, max_size=3) | st.just([1] * 201),
        "other": NUMBERS,
    },
)
TAGS = st.lists(st.sampled_from(["", "a", "b" * 16, "c" * 17]), max_size=11)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "tags": TAGS,
        "tag_expression": st.sampled_from(["*", "a || b"]),
        "binding_keys": st.lists(st.sampled_from(["a.*", "#", "x" * 64, "x" * 65]), max_size=6),
        "sql": st.sampled_from(["a = 1", "b IS NULL"]),
        "other": st.just("a"),
    },
)


@cache
def document() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(
        (ROOT / "layers/core/cirrusmq_lambda/openapi.json").read_text()
    )
    return read


def allows(schema: dict[str, Any], value: Any) -> bool:
    whole = {**schema, "components": document()["components"]}
    return bool(OAS31Validator(whole).is_valid(value))


def named(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


@given(RETRIES)
def test_it_allows_the_accepted_retry_policies(retry: dict[str, Any]) -> None:
    try:
        parse_retry(retry, ordered_source=True)
    except CirrusMQError:
        assert not allows(named("RetryPolicy"), retry)
    else:
        assert allows(named("RetryPolicy"), retry)


@given(FILTERS)
def test_it_allows_the_filters_accepted_somewhere(filter: dict[str, Any]) -> None:
    def is_taken(kind: Source) -> bool:
        try:
            compile_filter(filter, kind)
        except CirrusMQError:
            return False
        return True

    # A member is refused by name where it is of no use: by what a document cannot tell.
    kinds = [kind for kind in get_args(Source) if set(filter) <= {*MEMBERS[kind], "other"}]
    if kinds:
        assert allows(named("Filter"), filter) == any(map(is_taken, kinds))


def test_each_policy_tells_its_waits_and_its_end() -> None:
    told = {
        each["title"]: each["description"]
        for each in document()["components"]["schemas"]["RetryPolicy"]["oneOf"]
    }
    assert set(told) == set(DEFAULTS)
    assert told["exponential_decay"].startswith(
        "Waits 1, 2, 4, 8, 16, 32, 64, 128, 256, 512 s, the"
    )
    assert "176 retries, then kept until it expires" in told["exponential_decay"]
    assert "each time, of which up to 50% is drawn off. 3 retries" in told["backoff"]
    assert "Without end, or `max_retries`" in told["ordered"]


def test_a_put_tells_the_defaults_and_a_patch_has_none() -> None:
    schemas = document()["components"]["schemas"]
    alice = World().client("alice")
    made = alice.put("/queues/orders", {}).json
    defaults = {
        name: schema["default"]
        for name, schema in schemas["QueueInput"]["properties"].items()
        if "default" in schema
    }
    assert len(defaults) > 10
    assert {name: made[name] for name in defaults} == defaults
    for changed in ("QueueInputChange", "TopicInputChange", "SubscriptionInputChange"):
        assert not any("default" in each for each in schemas[changed]["properties"].values())


def test_every_field_of_a_request_tells_its_values() -> None:
    schemas = document()["components"]["schemas"]
    ours = {"ConfirmationRequest"}  # what a URL is posted
    asked = {
        name: held for name, held in schemas.items() if name.endswith(REQUESTS) and name not in ours
    }
    assert len(asked) > 20
    silent = [
        f"{name}.{field}"
        for name, held in asked.items()
        for field, schema in held.get("properties", {}).items()
        if not tells(schema)
    ]
    assert silent == []


def content(hook: str) -> dict[str, Any]:
    body = document()["webhooks"][hook]["post"]["requestBody"]
    schema: dict[str, Any] = body["content"][requests.CONTENT_TYPE]["schema"]
    return schema


def headers_of(hook: str) -> set[str]:
    return {each["name"] for each in document()["webhooks"][hook]["post"]["parameters"]}


@pytest.mark.parametrize(
    "message",
    [
        Message(body="hello"),
        Message(body=b"\x00", tags=("a", "b"), attributes={"region": "eu", "raw": b"\x01"}),
    ],
)
@pytest.mark.parametrize("content_format", ["json", "simplified"])
def test_a_post_is_as_the_document_says(message: Message, content_format: ContentFormat) -> None:
    headers, body = requests.delivery(
        subscription("http", name="web", content_format=content_format),
        "Msg-1",
        message,
        published_ms=1_795_000_000_000,
        **SIGNED,
    )
    described = headers_of("message")
    attributes = {name for name in headers if name.startswith(requests.ATTRIBUTE_PREFIX)}
    assert headers.keys() - attributes - {"Content-Type"} <= described
    assert bool(attributes) == (content_format == "simplified" and bool(message.attributes))
    posted = body.decode("latin-1") if content_format == "simplified" else json.loads(body)
    assert allows(named("PostedMessage"), posted) == (content_format == "json")
    assert allows(content("message"), posted)


def test_a_request_to_confirm_is_as_the_document_says() -> None:
    headers, body = requests.confirmation(
        subscription("http", name="web"),
        "token",
        confirm_url="https://example.com/confirm",
        expires_ms=1_795_000_000_000,
        **SIGNED,
    )
    assert headers.keys() - {"Content-Type"} == headers_of("confirmation")
    assert allows(content("confirmation"), json.loads(body))
