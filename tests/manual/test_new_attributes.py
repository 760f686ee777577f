"""A new attribute or word of the contract is known to the dialects' page, the manual, the console.

Nothing copies the contract's tables: this finds what was added to it and has no place yet.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.console.test_files import FOLDER as CONSOLE
from tests.console.test_files import LANGUAGES, read_texts
from tests.manual.pages import MANUAL

import cirrusmq_dialects
from manual.made import schemas

DIALECTS = {"SQS": "sqs", "CMQ": "cmq", "RocketMQ": "aliyun"}
SHAPES = {
    "queues": "QueueInput",
    "topics": "TopicInput",
    "subscriptions": "SubscriptionInput",
}
HEADING = "## Attributes that the SDKs do not know"


def names_in_code(folder: Path) -> set[str]:
    """Texts, keywords and members in a package's code; its comments and docstrings do not count."""
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Constant(value=str(text)):
                    found.add(text)
                case ast.keyword(arg=str(name)) | ast.Attribute(attr=name):
                    found.add(name)
    return found


def rows(text: str) -> dict[str, list[str]]:
    """The first cell of each row of a table -> its other cells."""
    lines = [line.strip().strip("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    return {first: others for first, *others in cells}


@pytest.mark.parametrize("kind", SHAPES)
def test_the_page_names_the_attributes_unknown_to_a_dialect(kind: str) -> None:
    _, _, below = (MANUAL / "sdk-matrix.md").read_text("utf-8").partition(HEADING)
    table = rows(below)
    dialects = table["of"]
    for dialect, cell in zip(dialects, table[kind], strict=True):
        if cell == "it has none":
            continue
        known = names_in_code(Path(cirrusmq_dialects.__file__).parent / DIALECTS[dialect])
        unknown = set(schemas()[SHAPES[kind]]["properties"]) - known
        assert set(re.findall(r"`(\w+)`", cell)) == unknown, f"{dialect}: {kind}"


@pytest.mark.parametrize("shape", [*SHAPES.values(), "ReceiverInput", "RetryPolicy", "PeekRequest"])
def test_a_page_explains_each_attribute(shape: str) -> None:
    """In a sentence or an example; the tables that are made of the contract do not count."""
    text = "\n".join(page.read_text("utf-8") for page in MANUAL.glob("*.md"))
    variants = [schemas()[shape], *schemas()[shape].get("oneOf", ())]
    for variant in variants:
        for name in variant.get("properties", {}):
            assert re.search(rf"[`\"]{name}[`\"=]|-a {name}=|[{{ ]{name}: ", text), name


def listed(path: str, name: str) -> list[str]:
    """A list of texts in a module of the console."""
    text = (CONSOLE / path).read_text("utf-8")
    found = re.search(rf"const {name} = \[(.*?)\]", text, re.DOTALL)
    assert found is not None, f"{path}: {name}"
    return re.findall(r'"(\w+)"', found[1])


def words(shape: str, *path: str) -> set[str]:
    """The words that a member of a shape may have."""
    held: Any = schemas()[shape]["properties"]
    for part in path:
        held = held[part]
    return set(held["enum"])


@pytest.mark.parametrize(
    ("prefix", "wanted"),
    [
        ("state", words("SubscriptionWithState", "state")),
        ("mode", words("SubscriptionWithState", "mode")),
        ("delivery", words("DeliveryState", "state")),
        ("message_state", words("MessageState", "state")),
        ("operation", words("OperationState", "kind") | words("OperationState", "state")),
        ("rate", {*schemas()["ResourceRates"]["properties"]} - {"kind", "name"}),
    ],
)
def test_the_console_has_a_word_for_each_of_the_contracts(prefix: str, wanted: set[str]) -> None:
    for language in LANGUAGES:
        texts = read_texts(language)
        assert [word for word in sorted(wanted) if f"{prefix}.{word}" not in texts] == []


def test_the_console_looks_at_every_state_and_draws_every_rate() -> None:
    assert set(listed("pages/queue_messages.js", "STATES")) == words("PeekRequest", "state")
    drawn = {
        *listed("rates.js", "ALSO"),
        *listed("pages/queue.js", "RATES"),
        *listed("pages/subscription.js", "OF_URL"),
        *listed("pages/subscription.js", "OF_GROUP"),
        *("published", "kept"),
    }
    assert drawn == {*schemas()["ResourceRates"]["properties"]} - {"kind", "name"}


def test_the_console_leaves_out_only_known_attributes() -> None:
    """Everything else that a change takes has a field: its form is made from the contract."""
    for path, shape in (
        ("pages/queue.js", "QueueInputChange"),
        ("pages/subscription.js", "SubscriptionInputChange"),
    ):
        assert set(listed(path, "FIXED")) <= set(schemas()[shape]["properties"]), path
    above = listed("pages/subscription.js", "SHOWN_ABOVE")
    assert set(above) <= set(schemas()["SubscriptionWithState"]["properties"])
    assert json.dumps(sorted(above)) == json.dumps(sorted(set(above)))
