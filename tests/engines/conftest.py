from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.engine import Engine, TableSpec

START_MS = 1_800_000_000_000


@dataclass
class Clock:
    """A clock that moves only when it is set; milliseconds."""

    ms: int = START_MS

    def __call__(self) -> int:
        return self.ms

    def advance(self, *, seconds: float) -> None:
        self.ms += int(seconds * 1000)


def to_wire(value: Any) -> dict[str, Any]:
    """A Python value in wire shape; a set's type is that of its elements."""
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int | float):
        return {"N": str(value)}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, bytes):
        return {"B": value}
    if isinstance(value, list):
        return {"L": [to_wire(element) for element in value]}
    if isinstance(value, dict):
        return {"M": wire_item(value)}
    ((tag, _),) = to_wire(next(iter(value))).items()
    return {f"{tag}S": [to_wire(element)[tag] for element in value]}


def from_wire(value: Mapping[str, Any]) -> Any:
    """The Python value of a wire shape; numbers become integers where they can."""
    ((tag, content),) = value.items()
    if tag == "NULL":
        return None
    if tag == "N":
        return _number(content)
    if tag == "L":
        return [from_wire(element) for element in content]
    if tag == "M":
        return plain_item(content)
    if tag in ("SS", "NS", "BS"):
        return {from_wire({tag[0]: element}) for element in content}
    return content


def wire_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_wire(value) for name, value in item.items()}


def plain_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: from_wire(value) for name, value in item.items()}


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


@dataclass
class Database:
    """An engine with one table, spoken to in Python values."""

    engine: Engine
    table: str = "Messages"

    def execute(self, operation: str, **request: Any) -> dict[str, Any]:
        return self.engine.execute(operation, {"TableName": self.table, **request})

    def put(self, item: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        return self.execute("PutItem", Item=wire_item(item), **_placeholders(more))

    def get(self, pk: str = "p", sk: str = "1", **more: Any) -> dict[str, Any] | None:
        answer = self.execute("GetItem", Key=wire_item({"pk": pk, "sk": sk}), **more)
        return plain_item(answer["Item"]) if "Item" in answer else None

    def update(self, expression: str, sk: str = "1", **more: Any) -> dict[str, Any]:
        answer = self.execute(
            "UpdateItem",
            Key=wire_item({"pk": "p", "sk": sk}),
            UpdateExpression=expression,
            **_placeholders(more),
        )
        return plain_item(answer.get("Attributes", {}))

    def delete(self, sk: str = "1", **more: Any) -> dict[str, Any]:
        return self.execute(
            "DeleteItem", Key=wire_item({"pk": "p", "sk": sk}), **_placeholders(more)
        )

    def query(self, condition: str = "pk = :p", **more: Any) -> dict[str, Any]:
        values = {"p": "p", **more.pop("values", {})}
        return self.execute(
            "Query", KeyConditionExpression=condition, **_placeholders({"values": values, **more})
        )

    def sort_keys(self, condition: str = "pk = :p", **more: Any) -> list[str]:
        return [item["sk"]["S"] for item in self.query(condition, **more)["Items"]]

    def transact(self, *writes: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        return self.engine.execute("TransactWriteItems", {"TransactItems": list(writes), **more})

    def a_put(self, item: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        return {"Put": {"TableName": self.table, "Item": wire_item(item), **_placeholders(more)}}

    def an_update(self, sk: str, expression: str, **more: Any) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self.table,
                "Key": wire_item({"pk": "p", "sk": sk}),
                "UpdateExpression": expression,
                **_placeholders(more),
            }
        }

    def a_check(self, sk: str, condition: str, **more: Any) -> dict[str, Any]:
        return {
            "ConditionCheck": {
                "TableName": self.table,
                "Key": wire_item({"pk": "p", "sk": sk}),
                "ConditionExpression": condition,
                **_placeholders(more),
            }
        }


def _placeholders(more: Mapping[str, Any]) -> dict[str, Any]:
    request = {name: value for name, value in more.items() if name not in ("values", "names")}
    if "values" in more:
        request["ExpressionAttributeValues"] = {
            f":{name}": to_wire(value) for name, value in more["values"].items()
        }
    if "names" in more:
        request["ExpressionAttributeNames"] = {
            f"#{name}": value for name, value in more["names"].items()
        }
    return request


@pytest.fixture
def clock() -> Clock:
    return Clock()


TABLES = [TableSpec("Messages", stream=True), TableSpec("Directory")]


@pytest.fixture(params=["in memory", "on disk"])
def engine(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    """An engine with the table Messages, which has a stream, and Directory, which has none."""
    path = tmp_path / "engine.db" if request.param == "on disk" else None
    opened = Engine(path, TABLES, now_ms=clock)
    yield opened
    opened.close()


@pytest.fixture
def database(clock: Clock) -> Iterator[Database]:
    """A database in memory, for tests that do not depend on a file."""
    engine = Engine(None, TABLES, now_ms=clock)
    yield Database(engine)
    engine.close()


@pytest.fixture
def stored(engine: Engine) -> Database:
    """A database in memory and one on disk."""
    return Database(engine)
