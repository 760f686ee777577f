"""The manual's tables of calls: none is missing, and the test in a row makes its calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cache
from inspect import isfunction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from botocore import xform_name
from kombu.simple import SimpleBase
from mq_http_sdk import mq_client, mq_consumer, mq_producer
from tests.dialects import cmq_sdk
from tests.dialects.conftest import session
from tests.dialects.programs import NEEDS_EMQ, ROOT, SDKS, needs_node

HERE = Path(__file__).parent
PAGE = (ROOT / "infra/manual/sdk-matrix.md").read_text("utf-8")
HERE_WORDS = re.compile(r"works|local(: .+)?|(differs|refused): .+")


class Row(NamedTuple):
    """Calls that are answered alike."""

    calls: list[str]
    here: str
    tests: list[str]


def rows(sdk: str) -> list[Row]:
    """The rows of the tables below a heading that begins with the SDK's name."""
    (section,) = (each for each in PAGE.split("\n## ") if each.startswith(sdk))
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in section.splitlines()
        if line.startswith("| `")
    ]
    return [
        Row(re.findall("`(.+?)`", calls), here, re.findall("`(.+?)`", test[0] if test else ""))
        for calls, here, *test in cells
    ]


def of_aws(service: str) -> set[str]:
    return set(session().client(service, "eu-central-1").meta.service_model.operation_names)


def of_sqs() -> set[str]:
    return of_aws("sqs")


def of_classes(*classes: type) -> set[str]:
    """The public methods of classes, inherited ones too."""
    return {
        f"{each.__name__}.{name}"
        for each in classes
        for name in dir(each)
        if not name.startswith("_") and isfunction(getattr(each, name))
    }


def of_kombu() -> set[str]:
    return {each.partition(".")[2] for each in of_classes(SimpleBase)}


def of_javascript() -> set[str]:
    commands = SDKS / "node_modules/@aws-sdk/client-sqs/dist-types/commands"
    return {each.name.removesuffix("Command.d.ts") for each in commands.glob("*Command.d.ts")}


def of_mq_for_node() -> set[str]:
    code = SDKS / "node_modules/@aliyunmq/mq-http-sdk/lib/client.js"
    return set(re.findall(r"^  async (\w+)\(", code.read_text("utf-8"), re.M))


def of_emq() -> set[str]:
    services = ("queue/QueueService", "message/MessageService", "statistics/StatisticsService")
    paths = [*(f"{each}.py" for each in services), "common/EMQBaseService.py"]
    found: set[str] = set()
    for path in paths:
        tree = ast.parse((ROOT / ".emq-sdk/emq" / path).read_text("utf-8"))
        (iface,) = (each for each in tree.body if getattr(each, "name", "") == "Iface")
        assert isinstance(iface, ast.ClassDef)
        found |= {each.name for each in iface.body if isinstance(each, ast.FunctionDef)}
    return found


SURFACES: dict[str, Callable[[], set[str]]] = {
    "boto3 1.44": lambda: {xform_name(each) for each in of_sqs()},
    "boto3 1.26": of_sqs,
    "SNS by boto3": lambda: {xform_name(each) for each in of_aws("sns")},
    "AWS SDK for JavaScript": of_javascript,
    "kombu": of_kombu,
    "qcloud-cmq-sdk-py3": lambda: of_classes(*cmq_sdk.CLASSES),
    "mq_http_sdk": lambda: of_classes(
        *(mq_client.MQClient, mq_consumer.MQConsumer),
        *(mq_producer.MQProducer, mq_producer.MQTransProducer),
    ),
    "@aliyunmq/mq-http-sdk": of_mq_for_node,
    "galaxy-sdk-python3": of_emq,
}
NODE = {
    "AWS SDK for JavaScript": needs_node("@aws-sdk/client-sqs"),
    "@aliyunmq/mq-http-sdk": needs_node("@aliyunmq/mq-http-sdk"),
    "galaxy-sdk-python3": NEEDS_EMQ,
}


@pytest.mark.parametrize("sdk", [pytest.param(each, marks=NODE.get(each, ())) for each in SURFACES])
def test_every_call_of_an_sdk_has_one_row(sdk: str) -> None:
    listed = [call for row in rows(sdk) for call in row.calls]
    assert len(listed) == len(set(listed))
    assert set(listed) == SURFACES[sdk]()


@pytest.mark.parametrize("sdk", SURFACES)
def test_a_row_says_how_it_is_answered_and_its_test_makes_the_calls(sdk: str) -> None:
    for row in rows(sdk):
        assert HERE_WORDS.fullmatch(row.here), row
        assert bool(row.tests) == (not row.here.startswith("local")), row
        for test in row.tests:
            path, name = test.split("::")
            shown = evidence(ROOT / path, name)
            for call in row.calls:
                assert re.search(rf"\b{call.rpartition('.')[2]}(Command|\b)", shown), (call, test)


def test_the_tests_run_against_a_started_service() -> None:
    named = {test for sdk in SURFACES for row in rows(sdk) for test in row.tests}
    named |= set(re.findall(r"`(tests/\S+?::\w+)`", PAGE))
    for test in sorted(named):
        path, name = test.split("::")
        assert "shared_stack" in fixtures(ROOT / path, name), test


@cache
def functions(path: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text("utf-8"))
    return {each.name: each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}


def evidence(path: Path, name: str) -> str:
    """The text of a test, and of the scripts and recordings that it names."""
    source = path.read_text("utf-8")
    shown = ast.get_source_segment(source, functions(path)[name]) or ""
    if "RECORDED" in shown:
        shown += (HERE / "sqs_query_calls.json").read_text("utf-8")
    for script in re.findall(r'"(\w+\.mjs)"', shown):
        shown += (HERE / "node" / script).read_text("utf-8")
    for program in re.findall(r'"(\w+_program\.py)"', shown):
        shown += (HERE / program).read_text("utf-8")
    return shown


def fixtures(path: Path, name: str) -> set[str]:
    """The names of all fixtures that a test needs, those of other fixtures among them."""
    known: dict[str, Any] = {**functions(HERE / "conftest.py"), **functions(path)}
    found: set[str] = set()
    left = [name]
    while left:
        function = known.get(left.pop())
        for each in function.args.args if function else ():
            if each.arg not in found:
                found.add(each.arg)
                left.append(each.arg)
    return found


EXAMPLES = {
    "coming-from-sqs.md": "orders.py",
    "coming-from-sns.md": "drinks.py",
    "coming-from-cmq.md": "cmq_orders.py",
    "coming-from-rocketmq.md": "mq_orders.py",
    "coming-from-emq.md": "emq_orders.py",
}


@pytest.mark.parametrize("page", EXAMPLES)
def test_a_page_shows_its_example_but_for_the_first_lines(page: str) -> None:
    program = (HERE / "examples" / EXAMPLES[page]).read_text("utf-8")
    _, _, code = program.partition("from __future__ import annotations\n\n")
    assert f"```python\n{code}```" in (ROOT / "infra/manual" / page).read_text("utf-8")
