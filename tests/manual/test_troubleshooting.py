"""The page of errors has what the service says, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.commands import run_command
from tests.manual.pages import MANUAL
from tests.stack import environment

from cirrusmq_local.testing import World
from manual.error_texts import ACTIONS, contract_errors, library_errors, sentences
from manual.made import with_tables
from manual.program_texts import PROGRAMS, Program
from manual.program_texts import actions as program_actions
from manual.program_texts import sentences_of as program_sentences

REFUSALS: tuple[tuple[str, str, dict[str, Any] | None], ...] = (
    ("PUT", "/queues/orders", {"visibility_timeout_seconds": 0}),
    ("PUT", "/queues/orders", {"colour": "red"}),
    ("PUT", "/queues/orders", {"fair": True, "ordered": True}),
    ("PUT", "/queues/orders", {"dead_letter": {"queue": "orders", "max_receives": 3}}),
    ("PUT", "/queues/a b", {}),
    ("GET", "/queues/nobody", None),
    ("GET", "/nowhere", None),
    ("POST", "/queues/plain/rewind", {"to": "2026-11-20T08:00:00Z"}),
    ("POST", "/queues/plain/messages", {"messages": []}),
    ("POST", "/queues/plain/messages", {"messages": [{"body": "x" * 70_000}]}),
    ("POST", "/queues/plain/messages/delete", {"receipts": []}),
    ("PUT", "/topics/news/subscriptions/sub", {"protocol": "pull", "filter": {"sql": "a >"}}),
    ("PUT", "/topics/news/subscriptions/sub", {"protocol": "pull", "filter": {"tags": "x"}}),
)


@cache
def page() -> str:
    """The page with what is made; it is slow to make, so that no worker makes it to collect."""
    return with_tables((MANUAL / "troubleshooting.md").read_text("utf-8"))


def test_each_code_says_what_to_do() -> None:
    codes = {kind.__name__ for kind in (*contract_errors(), *library_errors())}
    assert codes == set(yaml.safe_load(ACTIONS.read_text("utf-8")))
    for code in codes:
        assert re.search(rf"^###? `{code}`", page(), re.M), code


@pytest.mark.parametrize(("method", "path", "body"), REFUSALS)
def test_a_sentence_of_the_service_is_found_on_the_page(
    method: str, path: str, body: dict[str, Any] | None
) -> None:
    world = World()
    client = world.client("shop")
    client.put("/queues/plain")
    client.put("/topics/news")

    answer = client.call(method, path, body).json

    action = yaml.safe_load(ACTIONS.read_text("utf-8"))[answer["code"]]
    known = {*sentences()[answer["code"]], *re.findall(r"`([^`]*…[^`]*)`", action)}
    patterns = [re.escape(each).replace("…", ".*") for each in known]
    matching = [each for each in patterns if re.fullmatch(each, answer["detail"], re.DOTALL)]
    assert matching, (answer["detail"], sorted(known))


def test_each_error_of_a_program_says_what_to_do() -> None:
    found = [each for program in PROGRAMS for each in program_sentences(program)]

    assert [each for each in found if each.action is None] == []
    known = {each.text for each in found} | {each.kind for each in found}
    assert set(program_actions()) - known == set(), "entries of errors that are gone"


def test_a_new_error_has_no_action(tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text(
        "class Odd(ValueError): ...\n"
        "def f(x):\n    raise Odd(f'{x} is odd')\n"
        "def g(x):\n    raise ValueError(f'{x}: ' + 'is even')\n",
        "utf-8",
    )
    program = Program("New", "", [tmp_path], frozenset({"ValueError"}), with_exceptions=True)

    found = [(each.kind, each.text, each.action) for each in program_sentences(program)]

    assert found == [("ValueError", "…: is even", None), ("Odd", "… is odd", None)]


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (("queue", "list", "--data", "nowhere"), "Sentences of the Python library"),
        (("audit", "--data", "nowhere"), "On the command line"),
        (("listen", "--secret", "x"), "On the command line"),
        (("env", "sqs", "--data", "."), "On the command line"),
        (("up", "--port", "0", "--function", "shop"), "At the start of the service on one machine"),
        (("up", "--port", "0", "--data", "file"), "At the start of the service on one machine"),
        (("up", "--port", "0", "--definitions", "file"), "On the command line"),
    ],
)
def test_a_sentence_of_a_command_is_found_on_the_page(
    arguments: Sequence[str], title: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("version: 7\n", "utf-8")

    run = run_command(arguments, env=environment(), folder=tmp_path)

    assert run.returncode in (1, 2)
    program = next(each for each in PROGRAMS if each.title == title)
    # Usage errors are drawn in a box.
    said = " ".join(re.sub("[│╭╮╰╯─]", " ", run.stderr).split())
    texts = {each.text for each in program_sentences(program)}
    patterns = [re.escape(each).replace("…", ".*") for each in texts]
    assert any(re.search(each, said) for each in patterns if each.strip(".*: ")), said
