"""SNS's protocol `lambda` on one machine: a function that was given at the start."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
import pytest
from tests.local.test_connections import wait_until
from tests.stack import Start

PROGRAM = """
import pathlib

def handler(event, context):
    (record,) = event["Records"]
    pathlib.Path("got.txt").write_text(record["EventSource"] + " " + record["Sns"]["Message"])
"""


def test_a_function_of_the_start_is_subscribed_and_called(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "handler_of_a_test.py").write_text(PROGRAM)
    monkeypatch.chdir(folder)
    held = start("--function", "tea=handler_of_a_test:handler").connection()
    sns = boto3.client(
        "sns",
        region_name="eu-central-1",
        endpoint_url=held["dialect_url"],
        aws_access_key_id=held["signing_key"]["access_key_id"],
        aws_secret_access_key=held["signing_key"]["secret"],
    )
    topic = sns.create_topic(Name="drinks")["TopicArn"]
    arn = "arn:aws:lambda:eu-central-1:000000000000:function:tea"
    sns.subscribe(TopicArn=topic, Protocol="lambda", Endpoint=arn)

    text = json.dumps({"default": "water", "lambda": "tea"})
    sns.publish(TopicArn=topic, Message=text, MessageStructure="json")

    got = folder / "got.txt"
    wait_until(lambda: got.exists() and got.read_text() == "aws:sns tea")
