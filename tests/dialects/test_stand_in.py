"""`cirrusmq up --stand-in`: programs with an emulator's endpoint and key run unchanged."""

from __future__ import annotations

import importlib
import json
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
import typer
import yaml
from botocore.exceptions import ClientError
from tests.commands import run_command
from tests.manual.pages import MANUAL, ROOT
from tests.stack import COMMAND, Stack, Start, environment

from cirrusmq_local.commands.cli import make_app
from cirrusmq_local.stack.stand_in import PORT

PROGRAMS = ROOT / "tests/manual/how_to"

ACCOUNT = "000000000000"
"""That of emulators, which programs have in their settings."""


def sdk(service: str, port: int, word: str = "test") -> Any:
    return boto3.client(
        service,
        endpoint_url=f"http://localhost:{port}",
        region_name="us-east-1",
        aws_access_key_id=word,
        aws_secret_access_key=word,
    )


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def stand_in(start: Start, port: int) -> Stack:
    return start("--stand-in", "--dialect-port", str(port))


def test_a_standard_queue_of_a_stand_in_keeps_the_order_of_sends(start: Start, port: int) -> None:
    stand_in(start, port)
    sqs = sdk("sqs", port)
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    for number in range(10):
        sqs.send_message(QueueUrl=url, MessageBody=str(number))
    held = [sqs.receive_message(QueueUrl=url)["Messages"][0] for _ in range(3)]
    for each in held:
        given = {"QueueUrl": url, "ReceiptHandle": each["ReceiptHandle"], "VisibilityTimeout": 0}
        sqs.change_message_visibility(**given)
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]

    assert [each["Body"] for each in held] == ["0", "1", "2"]
    assert [each["Body"] for each in received] == [str(number) for number in range(10)]


def test_its_port_is_the_port_of_emulators(start: Start) -> None:
    stack = start("--stand-in")

    if stack.ready:
        assert stack.connection()["dialect_url"] == f"http://127.0.0.1:{PORT}"
    else:  # somebody else's tests have it
        assert f"cannot answer on 127.0.0.1:{PORT}" in stack.end()[2]


def test_sqs_and_sns_answer_to_the_well_known_key(start: Start, port: int) -> None:
    stand_in(start, port)
    sqs, sns = sdk("sqs", port), sdk("sns", port)

    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    topic = sns.create_topic(Name="news")["TopicArn"]
    raw = {"RawMessageDelivery": "true"}
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn["QueueArn"], Attributes=raw)
    sns.publish(TopicArn=topic, Message="published")
    named = f"http://localhost:{port}/{ACCOUNT}/orders"
    (message,) = sqs.receive_message(QueueUrl=named, WaitTimeSeconds=20)["Messages"]
    sqs.delete_message(QueueUrl=named, ReceiptHandle=message["ReceiptHandle"])

    assert url.startswith(f"http://localhost:{port}/")
    assert message["Body"] == "published"
    with pytest.raises(ClientError, match="InvalidClientTokenId"):
        sdk("sqs", port, "dummy").list_queues()


def test_the_pages_program_runs_on_it(
    start: Start, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(start, port)
    monkeypatch.syspath_prepend(str(PROGRAMS))
    program = importlib.import_module("container_orders")

    program.test_an_order_arrives(f"http://127.0.0.1:{port}")

    assert program.PORT == PORT


def test_the_containers_of_the_page_are_started_by_existing_options() -> None:
    page = (MANUAL / "stand-in.md").read_text("utf-8")
    (in_python,) = re.findall(r'with_command\("([^"]+)"\)', page)
    lists = re.findall(r"withCommand\(\[?([^\])]+)\]?\)", page)
    assert len(lists) == 2
    for words in (in_python.split(), *(re.findall(r'"([^"]+)"', each) for each in lists)):
        assert words == ["up", "--host", "0.0.0.0", "--data", "/data", "--stand-in"]
    command = typer.main.get_command(make_app()).commands["up"]  # type: ignore[attr-defined]
    options = {option: each for each in command.params for option in each.opts}
    assert {"--host", "--data", "--stand-in"} <= set(options)
    workflow = (ROOT / "infra/docker/github-service.yaml").read_text("utf-8")
    assert f"```yaml\n{workflow}```" in page
    service = yaml.safe_load(workflow)["jobs"]["test"]["services"]["cirrusmq"]
    assert service["env"] == {options["--stand-in"].envvar: "1"}
    assert service["ports"] == [f"{PORT}:{PORT}"]


@pytest.mark.long
def test_a_variable_says_the_same_as_the_option(port: int, tmp_path: Path) -> None:
    env = environment() | {"CIRRUSMQ_STAND_IN": "1"}
    command = [str(COMMAND), "up", "--port", "0", "--dialect-port", str(port)]
    service = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert service.stdout is not None
        assert service.stdout.readline().startswith("ready ")
        assert sdk("sqs", port).create_queue(QueueName="orders")["QueueUrl"]
    finally:
        service.terminate()
        service.communicate()


def test_its_port_answers_health_checks(start: Start, port: int) -> None:
    stand_in(start, port)

    answer = httpx.get(f"http://127.0.0.1:{port}/health")

    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


def test_the_key_is_gone_after_a_start_without_stand_in(start: Start, port: int) -> None:
    first = stand_in(start, port)
    sdk("sqs", port).create_queue(QueueName="orders")
    first.end()
    second = start("--dialect-port", str(port))

    with pytest.raises(ClientError, match="InvalidClientTokenId"):
        sdk("sqs", port).list_queues()
    native = httpx.get(f"{second.url}/queues", headers={"authorization": "Bearer test:test"})
    assert native.status_code == 401
    keys = second.client().get("/keys").json()["keys"]
    assert "AKIDtest" not in {each["access_key_id"] for each in keys}
    second.end()

    (first.folder / "sealing.key").unlink()
    stand_in(start, port)
    assert len(sdk("sqs", port).list_queues()["QueueUrls"]) == 1


def test_the_variables_for_sqs_are_those_for_sns_too(
    start: Start, port: int, tmp_path: Path
) -> None:
    stack = start("--dialect-port", str(port))
    arguments = ["env", "sqs", "--for", "dotenv", "--data", str(stack.folder)]

    printed = run_command(arguments, env=environment(), folder=tmp_path).stdout

    values = dict(line.split("=", 1) for line in printed.splitlines())
    assert values["AWS_ENDPOINT_URL_SQS"] == values["AWS_ENDPOINT_URL_SNS"]
    assert (
        values["AWS_ENDPOINT_URL_SNS"]
        == json.loads((stack.folder / "connection.json").read_text())["dialect_url"]
    )
