"""What is missing is told before a deployment begins, in a line."""

from __future__ import annotations

import shutil
from pathlib import Path

import boto3
import pytest
from tests.infra.tools import deployment

from release import preflight
from release.preflight import (
    Concurrency,
    Stack,
    TableUnits,
    reserved,
    wrong_concurrency,
    wrong_stack,
    wrong_units,
)

NONE_RESERVED = {"StreamConcurrency": "0", "PushConcurrency": "0", "SweepConcurrency": "0"}


def test_a_new_account_can_deploy_with_nothing_reserved() -> None:
    account = Concurrency(limit=10, unreserved=10)
    (line,) = wrong_concurrency(deployment(), None, account)
    assert "lets 0 executions be reserved, of 10" in line
    assert all(f"{name}=0" in line for name in NONE_RESERVED)
    template = deployment(**NONE_RESERVED)
    assert reserved(template) == 0
    assert not list(wrong_concurrency(template, None, account))


def test_a_stacks_reserved_concurrency_counts_once() -> None:
    template = deployment()
    assert reserved(template) == 211
    assert reserved(deployment(ReceiveConcurrency="600")) == 811
    usual = Concurrency(limit=1_000, unreserved=1_000)
    assert not list(wrong_concurrency(template, None, usual))
    its_own = Concurrency(limit=320, unreserved=109)
    assert list(wrong_concurrency(template, None, its_own))
    there = Stack("UPDATE_COMPLETE", {})
    assert not list(wrong_concurrency(template, there, its_own))


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("UPDATE_IN_PROGRESS", "wait until that is over"),
        ("UPDATE_ROLLBACK_IN_PROGRESS", "wait until that is over"),
        ("UPDATE_ROLLBACK_FAILED", "continue-update-rollback --stack-name queues"),
        ("ROLLBACK_COMPLETE", "python -m infra.remove queues"),
        ("ROLLBACK_FAILED", "python -m infra.remove queues"),
    ],
)
def test_an_undeployable_stack_tells_the_remedy(status: str, told: str) -> None:
    (line,) = wrong_stack(Stack(status, {"BodiesInS3From": "16"}), "queues", {})
    assert status in line
    assert told in line


def test_bodies_go_to_s3_after_the_deployment_of_a_reading_release() -> None:
    old, new = Stack("UPDATE_COMPLETE", {}), Stack("UPDATE_COMPLETE", {"BodiesInS3From": "0"})
    for given in ({}, {"BodiesInS3From": "16"}):
        (line,) = wrong_stack(old, "queues", given)
        assert line.startswith("BodiesInS3From=0 comes first")
        assert not list(wrong_stack(new, "queues", given))
    assert not list(wrong_stack(old, "queues", {"BodiesInS3From": "0"}))
    assert not list(wrong_stack(None, "queues", {}))


def test_other_tables_are_rolled_out_at_once() -> None:
    """A canary would send nine calls of ten to the tables before."""
    there = {"BodiesInS3From": "16", "Rollout": "Canary10Percent5Minutes"}
    stack = Stack("UPDATE_COMPLETE", there)
    given = {"ExistingMessagesTable": "restored"}
    (line,) = wrong_stack(stack, "queues", given)
    assert line.startswith("ExistingMessagesTable changes: give Rollout=AllAtOnce")
    assert not list(wrong_stack(stack, "queues", {**given, "Rollout": "AllAtOnce"}))
    same = Stack("UPDATE_COMPLETE", {**there, **given})
    assert not list(wrong_stack(same, "queues", given))


def test_more_functions_than_an_environment_holds_are_refused_in_words() -> None:
    arns = [f"arn:aws:lambda:eu-central-1:123456789012:function:{'f' * 64}:{n}" for n in range(60)]
    few = deployment(InvokeFunctions=",".join(arns[:10]))
    assert not list(preflight.wrong_parameters(few))
    lines = list(preflight.wrong_parameters(deployment(InvokeFunctions=",".join(arns))))
    assert lines
    assert all(line.startswith("InvokeFunctions: the environment of ") for line in lines)
    assert all("4,096" in line for line in lines)


def test_missing_tools_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    python, sam = preflight.missing_here(tmp_path)
    assert python.startswith("python3.13 is not on the path")
    assert sam == ".venv-sam/bin/sam is missing: make deploy-tools"


def test_an_account_without_credentials_is_told(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    session = boto3.session.Session(region_name="eu-central-1")
    problems, stack = preflight.find_problems(root, "queues", {}, session)
    assert stack is None
    assert problems[-1].startswith("the account cannot be asked: ")


@pytest.mark.usefixtures("in_aws")
def test_a_stack_never_made_is_none() -> None:
    assert preflight.read_stack(boto3.session.Session(), "queues") is None


USUAL = TableUnits(reads=40_000, writes=40_000)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"WarmReadUnits": "1", "WarmWriteUnits": "40001"}, "WarmWriteUnits: 40,001 units"),
        ({"WarmReadUnits": "40001", "WarmWriteUnits": "1"}, "WarmReadUnits: 40,001 units"),
        (
            {"Capacity": "provisioned", "MessagesUnits": "10,4000,10,50000,70"},
            "MessagesUnits: 50,000 units",
        ),
    ],
)
def test_more_units_than_a_table_may_have_are_refused(given: dict[str, str], told: str) -> None:
    lines = list(wrong_units(deployment(StreamConcurrency="0", **given), USUAL))
    assert [line[: len(told)] for line in lines] == [told]
    assert "40,000 that the account lets a table have" in lines[0]
    raised = TableUnits(reads=60_000, writes=60_000)
    assert not list(wrong_units(deployment(StreamConcurrency="0", **given), raised))


def test_the_maxima_of_provisioned_tables_count_for_these_alone() -> None:
    given = {"MessagesUnits": "10,4000,10,50000,70"}
    assert not list(wrong_units(deployment(**given), USUAL))


def test_the_stream_of_warm_tables_has_a_reader_for_each_shard() -> None:
    raised = TableUnits(reads=200_000, writes=200_000)
    warm = {"WarmReadUnits": "20000", "WarmWriteUnits": "150000"}
    (line,) = wrong_units(deployment(**warm), raised)
    assert line.startswith("StreamConcurrency: 40 executions read 40 shards")
    assert "150: give 0 or at least 150" in line
    for enough in ("0", "150"):
        template = deployment(StreamConcurrency=enough, **warm)
        assert not list(wrong_units(template, raised))


class _Limits:
    """A session whose DynamoDB tells its quotas, as boto3's model of the call has them."""

    def client(self, service: str) -> _Limits:
        assert service == "dynamodb"
        return self

    def describe_limits(self) -> dict[str, int]:
        shape = boto3.client("dynamodb", "eu-central-1").meta.service_model.operation_model(
            "DescribeLimits"
        )
        assert shape.output_shape is not None
        return {name: 1 + place for place, name in enumerate(sorted(shape.output_shape.members))}


def test_a_tables_quotas_are_told_by_dynamodb() -> None:
    told = _Limits().describe_limits()
    assert preflight.read_table_units(_Limits()) == TableUnits(
        told["TableMaxReadCapacityUnits"], told["TableMaxWriteCapacityUnits"]
    )
