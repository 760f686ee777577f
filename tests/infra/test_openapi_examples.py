"""Every example of the document is posted and taken, and each call tells what it costs.

With these costs the document is made: the committed one, and the clients' types, are not stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from openapi.__main__ import texts
from openapi.operations import OPERATIONS
from openapi.trial import Tried, Units, counted, tried

WITHOUT_UNITS = {
    # Of the data pipeline's files, which are not there.
    "GET /reports/backlog",
    "GET /reports/billing",
    # Of files of the function's own.
    "GET /docs/api/{asset}",
}


@pytest.fixture(scope="module")
def made() -> list[Tried]:
    return list(tried())


def test_every_example_is_posted_and_taken(made: list[Tried]) -> None:
    posted = {(one.call, one.example): one.reply for one in made if one.example is not None}
    assert set(posted) == {
        (call, name) for call, operation in OPERATIONS.items() for name in operation.examples
    }
    refused = {key: reply.text for key, reply in posted.items() if reply.status >= 300}
    assert refused == {}


def test_no_receipt_of_an_example_is_refused(made: list[Tried]) -> None:
    for one in made:
        if one.reply.status == 200 and "/messages/" in one.call:
            assert one.reply.json.get("failed", []) == [], one.call


def test_every_call_tells_its_cost(made: list[Tried]) -> None:
    units = counted_of(made)
    assert set(OPERATIONS) - set(units) <= WITHOUT_UNITS
    queue = "/queues/{queue}/messages"
    life = [units[f"POST {queue}{each}"] for each in ("", "/receive", "/delete")]
    assert sum(written for written, _ in life) == 3
    assert sum(read for _, read in life) == 0.5


def test_the_committed_document_and_the_clients_types_are_the_present_ones(
    root: Path, made: list[Tried]
) -> None:
    for path, text in texts(counted_of(made)).items():
        if (root / path).read_text(encoding="utf-8") != text:
            pytest.fail(f"{path} is stale: run make openapi")


def counted_of(made: list[Tried]) -> Mapping[str, Units]:
    """What `counted` says of these."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("openapi.trial.tried", lambda: iter(made))
        return counted()
