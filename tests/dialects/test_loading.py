"""A call loads its own dialect, and of that one what it needs: the rest slows its cold start."""

from __future__ import annotations

import subprocess
import sys

import pytest


def loaded(*modules: str) -> set[str]:
    """The modules that a new process has after it imports these."""
    program = f"import {', '.join(modules)}, sys; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return set(run.stdout.split())


def within(names: set[str], *packages: str) -> set[str]:
    return {each for each in names if each.startswith(packages)}


@pytest.mark.few(3)
@pytest.mark.parametrize("dialect", ["aliyun", "cmq", "emq", "sns", "sqs"])
def test_a_dialect_loads_no_other_one(dialect: str) -> None:
    found = loaded(f"cirrusmq_dialects.{dialect}.serve")
    others = {each for each in within(found, "cirrusmq_dialects.") if each.count(".") > 1}
    assert {each.split(".")[1] for each in others} == {dialect}


@pytest.mark.few(2)
@pytest.mark.parametrize("module", ["router", "aliyun", "cmq", "sns", "sqs"])
def test_thrift_is_loaded_by_emq_alone(module: str) -> None:
    assert "thrift" not in loaded(f"cirrusmq_dialects.{module}")


def test_native_functions_load_no_dialect() -> None:
    found = loaded("cirrusmq_lambda.routes.sending", "cirrusmq_lambda.routes.receiving")
    assert not within(found, "cirrusmq_dialects")


def test_calls_on_messages_of_cmq_load_nothing_of_topics_publishing_and_operations() -> None:
    found = loaded("cirrusmq_dialects.cmq.serve", "cirrusmq_dialects.cmq.message_calls")
    assert not within(found, "cirrusmq.publishing", "cirrusmq.operations", "cirrusmq.push")
    assert "cirrusmq.subscriptions.management" not in found
