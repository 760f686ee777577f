"""A test of your own, with the service in a container."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest

PORT = 4566


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import HttpWaitStrategy

    service = (
        DockerContainer("cirrusmq")
        .with_command("up --host 0.0.0.0 --data /data --stand-in")
        .with_exposed_ports(PORT)
        .waiting_for(HttpWaitStrategy(PORT, "/health"))
    )
    with service:
        yield f"http://{service.get_container_host_ip()}:{service.get_exposed_port(PORT)}"


def test_an_order_arrives(endpoint: str) -> None:
    key = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    sqs = boto3.client("sqs", endpoint_url=endpoint, region_name="us-east-1", **key)
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="two coffees")
    (message,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"]
    assert message["Body"] == "two coffees"
