"""The page of errors has what the service says, and what to do about it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from tests.manual.pages import MANUAL

from cirrusmq_local.testing import World
from manual.error_texts import ACTIONS, contract_errors, library_errors, sentences
from manual.made import with_tables

PAGE = with_tables((MANUAL / "troubleshooting.md").read_text("utf-8"))
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


def test_each_code_says_what_to_do() -> None:
    codes = {kind.__name__ for kind in (*contract_errors(), *library_errors())}
    assert codes == set(yaml.safe_load(ACTIONS.read_text("utf-8")))
    for code in codes:
        assert re.search(rf"^###? `{code}`", PAGE, re.M), code


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
