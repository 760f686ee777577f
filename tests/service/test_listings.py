"""Pages of queues: their order, limits, prefixes and cursors."""

from __future__ import annotations

from typing import Any

import pytest
from tests.listings import key_id

from cirrusmq_local.testing import Client


def names(client: Client, query: str = "") -> list[str]:
    return [queue["name"] for queue in client.get("/queues", query).json["queues"]]


def pages(client: Client, query: str, path: str = "/queues") -> list[list[dict[str, Any]]]:
    """The entries on each page, following cursors to the end."""
    found = []
    cursor = ""
    while True:
        page = client.get(path, query + cursor).json
        found.append(page[path.rpartition("/")[2]])
        if "cursor" not in page:
            return found
        cursor = f"&cursor={page['cursor']}"


@pytest.fixture
def queues(alice: Client, bob: Client) -> Client:
    """alice with five queues; bob has one."""
    for name in ("beta", "Alpha", "delta", "able", "gamma"):
        alice.put(f"/queues/{name}")
    bob.put("/queues/bobs")
    return alice


def test_a_listing_has_the_callers_queues_with_their_attributes(queues: Client) -> None:
    assert sorted(names(queues)) == ["Alpha", "able", "beta", "delta", "gamma"]
    first = queues.get("/queues", "prefix=beta").json["queues"][0]
    shown = queues.get("/queues/beta").json
    assert shown.pop("region")
    assert first | {"counts": None} == shown | {"counts": None}


def test_a_prefix_selects_with_case(queues: Client) -> None:
    assert names(queues, "prefix=a") == ["able"]
    assert names(queues, "prefix=Al") == ["Alpha"]
    assert names(queues, "prefix=zeta") == []


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6])
def test_pages_hold_every_queue_once_and_the_last_has_no_cursor(queues: Client, limit: int) -> None:
    found = pages(queues, f"limit={limit}")

    assert [len(page) for page in found] == [limit] * (5 // limit) + (
        [5 % limit] if 5 % limit else []
    )
    together = [queue["name"] for page in found for queue in page]
    assert sorted(together) == ["Alpha", "able", "beta", "delta", "gamma"]


def test_pages_of_a_prefix_are_full(queues: Client) -> None:
    for number in range(4):
        queues.put(f"/queues/Ab{number}")
        queues.put(f"/queues/ab{number}x")

    assert [len(page) for page in pages(queues, "prefix=Ab&limit=2")] == [2, 2]


def test_a_limit_goes_from_1_to_1000(queues: Client) -> None:
    assert len(names(queues, "limit=1")) == 1
    assert len(names(queues, "limit=1000")) == 5


def test_a_page_has_100_entries_unless_it_says_otherwise(alice: Client) -> None:
    for number in range(101):
        alice.put(f"/queues/q{number}")

    assert [len(page) for page in pages(alice, "prefix=")] == [100, 1]


@pytest.fixture
def listed(alice: Client, bob: Client) -> dict[str, tuple[Client, str, list[str]]]:
    """Listings of five things in their order: the client, an entry's name, the five."""
    five = [f"name{number}" for number in range(5)]
    alice.put("/queues/orders")
    alice.put("/topics/news")
    for name in five:
        alice.put(f"/queues/orders/receivers/{name}")
        alice.put(f"/queues/orders/grants/{name}", {"permission": "send"})
        alice.put(f"/topics/news/subscriptions/{name}", {"protocol": "pull"})
        alice.put(f"/queues/{name}")
        alice.put(f"/queues/{name}/grants/bob", {"permission": "send"})
    begun = [alice.post("/queues/orders/purge").json["operation"] for _ in five]
    made = [alice.post("/keys").json["access_key_id"] for _ in five[1:]]
    return {
        "/keys": (alice, "access_key_id", sorted([*made, key_id(alice)])),
        "/operations": (alice, "id", begun[::-1]),
        "/queues/orders/receivers": (alice, "name", five),
        "/queues/orders/grants": (alice, "account", five),
        "/topics/news/subscriptions": (alice, "name", five),
        "/grants": (bob, "queue", [f"alice:{name}" for name in five]),
    }


@pytest.mark.parametrize("limit", [1, 2, 5, 6])
@pytest.mark.parametrize(
    "path",
    [
        *("/queues/orders/receivers", "/queues/orders/grants", "/topics/news/subscriptions"),
        *("/grants", "/keys", "/operations"),
    ],
)
def test_every_listing_has_pages(
    listed: dict[str, tuple[Client, str, list[str]]], path: str, limit: int
) -> None:
    client, field, expected = listed[path]

    found = pages(client, f"limit={limit}", path)

    assert [entry[field] for page in found for entry in page] == expected
    assert [len(page) for page in found[:-1]] == [limit] * (len(found) - 1)


def test_a_cursor_is_opaque_and_url_safe(queues: Client) -> None:
    cursor = queues.get("/queues", "limit=1").json["cursor"]

    assert set(cursor) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
