"""The embedded engine against moto: random operations give the same answers and the same items.

Both are called through botocore. Units and transaction conflicts are left out: moto has none. So is
what it does otherwise than DynamoDB's documents say (`MOTO_DIFFERS`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cirrusmq_local.verifying import beside_engine
from cirrusmq_local.verifying.beside_engine import BesideEngine

QUICK = [(1, 6)]
LONG = [(seed, 25) for seed in range(1, 18)]
"""Seeds and rounds. moto copies all that its stream has in each transaction, and drops no copy
before its backends are reset: 400 rounds of one table took 23 GB."""
TABLE = "Messages"


@pytest.fixture
def moto() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_ACCESS_KEY_ID", "any")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "any")
        yield boto3.client("dynamodb", region_name="us-east-1")


@pytest.mark.parametrize(
    ("seed", "rounds"), [*QUICK, *(pytest.param(*each, marks=pytest.mark.long) for each in LONG)]
)
def test_random_operations_do_the_same_on_both(moto: Any, seed: int, rounds: int) -> None:
    engine = beside_engine.engine_of(TABLE)
    ours = beside_engine.client_of(engine, boto3.Session())
    beside_engine.create_table(moto, TABLE)
    try:
        told = BesideEngine(moto, ours, engine, TABLE, seed, False).play(rounds)
    finally:
        moto.delete_table(TableName=TABLE)
        engine.close()
    assert told.differences == []
    assert told.rounds == rounds
