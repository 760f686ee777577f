"""A Lambda function that sells each order once, with a DynamoDB table of its own."""

from __future__ import annotations

from typing import Any

import boto3

from cirrusmq_client import DynamoDBTransactions, Received, exactly_once


@exactly_once(DynamoDBTransactions(boto3.client("dynamodb")), group="shop")
def handler(message: Received, writes: list[dict[str, Any]]) -> None:
    item = {"order": {"S": message.id}, "what": {"S": message.text}}
    writes.append({"Put": {"TableName": "sold", "Item": item}})
