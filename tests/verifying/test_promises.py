"""The page of promises and the command name the same ones."""

from __future__ import annotations

import re
from pathlib import Path

from cirrusmq_local.verifying.promises import JUDGES, NEEDS, PROMISES
from cirrusmq_local.verifying.scenes import scenes

PAGE = Path(__file__).parents[2] / "infra/manual/promises.md"


def test_each_row_has_an_id_named_by_the_result() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(), re.M)
    assert rows == [*PROMISES]
    assert len(set(rows)) == len(rows)
    assert PAGE.read_text().count("\n| ") == len(rows) + 2, "a row without an id"


def test_checks_are_of_promises() -> None:
    assert {*JUDGES} <= {*PROMISES}
    assert {*NEEDS} <= {*JUDGES}


def test_each_judged_promise_has_a_scene() -> None:
    from cirrusmq_local.verifying.played import Played
    from cirrusmq_local.verifying.remote import Remote, Service

    remote = Remote(Service("http://127.0.0.1:9", ""), "p-", 1)
    for promise, shows in NEEDS.items():
        able = [n for n, each in scenes().items() if shows(Played(n, each, remote))]
        assert able, f"no scene shows {promise}"
