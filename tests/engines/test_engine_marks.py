"""An engine in memory goes back to a mark, and tells where its commits end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cirrusmq_local.engine import Engine, TableSpec
from cirrusmq_local.engine.errors import EngineError

TABLE = "things"
SPEC = TableSpec(TABLE, stream=True)


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(None, [SPEC], now_ms=lambda: 1_000)
    yield made
    made.close()


def _put(engine: Engine, name: str, value: str = "1") -> None:
    item = {"pk": {"S": "a"}, "sk": {"S": name}, "value": {"N": value}}
    engine.execute("PutItem", {"TableName": TABLE, "Item": item})


def _names(engine: Engine) -> list[str]:
    return [str(sk) for _, sk, _ in engine.contents()]


def test_it_goes_back_to_a_mark_again_and_again(engine: Engine) -> None:
    _put(engine, "one")
    first = engine.mark(1)
    for name in ("two", "three"):
        _put(engine, name)
        second = engine.mark(2)
        _put(engine, "four", "4")
        engine.go_back(2, second)
        assert _names(engine) == sorted(["one", name])

        engine.go_back(1, first)

        assert _names(engine) == ["one"]
        assert engine.stream_position(TABLE) == 1
        assert [each.sequence for each in engine.read_stream(TABLE, 0, 9)] == [1]


def test_refused_writes_behind_a_mark_leave_the_others(engine: Engine) -> None:
    mark = engine.mark(1)
    _put(engine, "one")
    item = {"pk": {"S": "a"}, "sk": {"S": "one"}}
    refused = {"TableName": TABLE, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}

    with pytest.raises(EngineError):
        engine.execute("PutItem", refused)

    assert _names(engine) == ["one"]
    keys = {"TransactItems": [{"Get": {"TableName": TABLE, "Key": item}}]}
    assert len(engine.execute("TransactGetItems", keys)["Responses"]) == 1
    engine.go_back(1, mark)
    assert _names(engine) == []


def test_a_copy_has_the_writes_behind_a_mark(engine: Engine) -> None:
    _put(engine, "one")
    engine.mark(1)
    _put(engine, "two")

    copy = Engine(None, [SPEC], now_ms=lambda: 1_000, like=engine)

    assert copy.contents() == engine.contents()
    assert copy.commit_ends(TABLE) == engine.commit_ends(TABLE)
    copy.close()


def test_commits_end_at_their_last_change(engine: Engine) -> None:
    """Also those of one millisecond; and what is taken back ended nowhere."""
    _put(engine, "one")
    writes = [
        {"Put": {"TableName": TABLE, "Item": {"pk": {"S": "a"}, "sk": {"S": name}}}}
        for name in ("two", "three")
    ]
    engine.execute("TransactWriteItems", {"TransactItems": writes})
    mark = engine.mark(1)
    _put(engine, "four")

    assert engine.commit_ends(TABLE) == [1, 3, 4]
    engine.go_back(1, mark)
    assert engine.commit_ends(TABLE) == [1, 3]
