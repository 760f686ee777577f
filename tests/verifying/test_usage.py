"""The usage that a service metered is compared with what the calls of a run did."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.commands.verify_files import region
from cirrusmq_local.testing import World
from cirrusmq_local.verifying.played import Played
from cirrusmq_local.verifying.remote import Remote, Service
from cirrusmq_local.verifying.scenes import scenes
from cirrusmq_local.verifying.usage import judge_usage, read_exports


def _played(name: str, prefix: str) -> Played:
    """A scene in which one send of two messages was answered, and another one not."""
    remote = Remote(Service("http://127.0.0.1:9", ""), prefix, 1)
    played = Played(name, scenes()[name], remote)
    given: dict[str, Any] = {"labels": ["a", "b"], "name": "a", "attempt": None}
    given |= {"groups": [None, None], "keys": [None, None], "delays": [None, None]}
    for answer in ([("1", 1), ("2", 1)], None):
        call = remote.history.begin("sender0", "send", "orders", dict(given), 1)
        remote.history.end(call, "failed" if answer is None else "answered", answer, 2)
    return played


@pytest.mark.parametrize(("sent", "broken"), [(1, True), (2, False), (4, False), (5, True)])
def test_a_count_is_between_the_known_and_the_possible_one(sent: int, broken: bool) -> None:
    played = _played("singles", "v-1-singles-")
    counted = Counter({("v-1-singles-orders", "sent"): sent, ("orders", "sent"): 100})

    shown = judge_usage([played], counted)

    assert shown["sent"] == {"metered": sent, "at_least": 2, "at_most": 4}
    assert [promise for promise, _ in played.violations] == ["usage"] * broken


def test_a_count_may_be_nothing() -> None:
    played = _played("singles", "v-1-singles-")

    shown = judge_usage([played], Counter())

    assert shown["sent"] == {"metered": 0, "at_least": 2, "at_most": 4}


def test_exports_have_the_metered_usage(tmp_path: Path) -> None:
    world = World()
    shop = world.client("shop")
    shop.put("/queues/orders")
    shop.send("orders", "one")
    shop.receive("orders")
    world.settle()

    tables = world.core.tables
    folders = [
        world.engine.export(each, tmp_path / each) for each in (tables.usage, tables.messages)
    ]

    assert read_exports(folders) == {("orders", "sent"): 1, ("orders", "received"): 1}


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://a1b2.execute-api.eu-central-1.amazonaws.com/prod", "eu-central-1"),
        ("https://abc.lambda-url.cn-north-1.on.aws", "cn-north-1"),
        ("https://queue.example.com", None),
        ("http://127.0.0.1:8025", None),
    ],
)
def test_a_region_is_read_from_the_url(url: str, told: str | None) -> None:
    assert region(url) == told
