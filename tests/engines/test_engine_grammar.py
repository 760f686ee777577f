"""The parser of expressions is made once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from lark import Lark

from cirrusmq_local.engine import grammar


def test_threads_parsing_first_at_the_same_time_share_one_parser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    together = Barrier(4)

    def count(*arguments: Any, **options: Any) -> Any:
        made.append(Lark(*arguments, **options))
        return made[-1]

    def parse(number: int) -> Any:
        together.wait(20)
        return grammar.parse(f"a{number} = :a", "condition", "ConditionExpression").data

    monkeypatch.setattr(grammar, "Lark", count)
    grammar._make_parser.cache_clear()
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(parse, range(4))) == {"condition"}
    assert len(made) == 1
