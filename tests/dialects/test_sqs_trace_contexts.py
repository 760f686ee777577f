"""W3C's trace context between SQS's SDKs and the service's own calls, beside AWS's header."""

from __future__ import annotations

import json
from typing import Any

from tests.dialects.test_sqs_native_views import TRACE, send

from cirrusmq_local.testing import Client

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
GIVEN = {"traceparent": {"DataType": "String", "StringValue": PARENT}}


def test_an_attribute_of_sqs_is_seen_by_the_own_calls(shop: Client, sqs: Any) -> None:
    shop.put("/queues/orders", {})
    send(sqs, "orders", MessageAttributes=GIVEN)

    assert shop.receive("orders")[0]["attributes"] == {"traceparent": PARENT}


def test_a_header_of_an_own_call_is_seen_by_sqs(shop: Client, sqs: Any) -> None:
    shop.put("/queues/orders", {})
    body = json.dumps({"messages": [{"body": "x"}]}).encode()
    shop.raw("POST", "/queues/orders/messages", body, headers={"traceparent": PARENT})

    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    asked = {"MessageAttributeNames": ["All"], "MessageSystemAttributeNames": ["All"]}
    (message,) = sqs.receive_message(QueueUrl=url, **asked)["Messages"]

    assert message["MessageAttributes"] == GIVEN
    assert "AWSTraceHeader" not in message["Attributes"]


def test_a_header_of_a_call_of_sqs_is_no_attribute(shop: Client, sqs: Any) -> None:
    shop.put("/queues/orders", {})
    sqs.meta.events.register(
        "before-sign.sqs", lambda request, **_: request.headers.add_header("traceparent", PARENT)
    )

    send(sqs, "orders", MessageAttributes={}, MessageSystemAttributes=TRACE)

    assert shop.receive("orders")[0]["attributes"] == {}
