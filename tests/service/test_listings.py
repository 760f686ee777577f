"""Pages of queues: their order, limits, prefixes and cursors."""

from __future__ import annotations

import base64
import random

import pytest

from cirrusmq_local.testing import Client, World


def names(client: Client, query: str = "") -> list[str]:
    return [queue["name"] for queue in client.get("/queues", query).json["queues"]]


def pages(client: Client, query: str) -> list[list[str]]:
    """The names on each page, following cursors to the end."""
    found = []
    cursor = ""
    while True:
        page = client.get("/queues", query + cursor).json
        found.append([queue["name"] for queue in page["queues"]])
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
    together = [name for page in found for name in page]
    assert sorted(together) == ["Alpha", "able", "beta", "delta", "gamma"]


def test_pages_of_a_prefix_are_full(queues: Client) -> None:
    for number in range(4):
        queues.put(f"/queues/Ab{number}")
        queues.put(f"/queues/ab{number}x")

    assert [len(page) for page in pages(queues, "prefix=Ab&limit=2")] == [2, 2]


def test_a_limit_is_1_to_1000(queues: Client) -> None:
    assert len(names(queues, "limit=1")) == 1
    assert len(names(queues, "limit=1000")) == 5
    for limit in ("0", "1001", "-1", "1.5", "x", "", "1e2", "99999999999999999999", "%C2%B2"):
        reply = queues.get("/queues", f"limit={limit}")
        assert (reply.status, reply.code) == (400, "InvalidParameter"), limit
        assert reply.json["parameter"] == "limit"


def test_a_page_has_100_entries_unless_it_says_otherwise(alice: Client) -> None:
    for number in range(101):
        alice.put(f"/queues/q{number}")

    assert [len(page) for page in pages(alice, "prefix=")] == [100, 1]


def test_an_unknown_parameter_is_refused(alice: Client) -> None:
    reply = alice.get("/queues", "prefx=a")

    assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "prefx")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/queues/beta"),
        ("PUT", "/queues/beta"),
        ("DELETE", "/queues/beta"),
        ("POST", "/queues/beta/purge"),
        ("POST", "/queues/beta/messages/receive"),
        ("GET", "/queues/beta/receivers"),
        ("GET", "/grants"),
        ("GET", "/health"),
    ],
)
def test_a_call_with_an_unknown_parameter_does_nothing(
    queues: Client, method: str, path: str
) -> None:
    before = queues.world.items("directory")

    reply = queues.call(method, path, query="force=true")

    assert (reply.status, reply.code) == (400, "InvalidParameter")
    assert reply.json["parameter"] == "force"
    assert queues.world.items("directory") == before


@pytest.fixture
def listed(alice: Client, bob: Client) -> dict[str, tuple[Client, str, list[str]]]:
    """Listings of five things by name: the client, the field that names an entry, the five."""
    five = [f"name{number}" for number in range(5)]
    alice.put("/queues/orders")
    alice.put("/topics/news")
    for name in five:
        alice.put(f"/queues/orders/receivers/{name}")
        alice.put(f"/queues/orders/grants/{name}", {"permission": "send"})
        alice.put(f"/topics/news/subscriptions/{name}", {"protocol": "pull"})
        alice.put(f"/queues/{name}")
        alice.put(f"/queues/{name}/grants/bob", {"permission": "send"})
    return {
        "/queues/orders/receivers": (alice, "name", five),
        "/queues/orders/grants": (alice, "account", five),
        "/topics/news/subscriptions": (alice, "name", five),
        "/grants": (bob, "queue", [f"alice:{name}" for name in five]),
    }


@pytest.mark.parametrize("limit", [1, 2, 5, 6])
@pytest.mark.parametrize(
    "path",
    ["/queues/orders/receivers", "/queues/orders/grants", "/topics/news/subscriptions", "/grants"],
)
def test_every_listing_has_pages(
    listed: dict[str, tuple[Client, str, list[str]]], path: str, limit: int
) -> None:
    client, field, expected = listed[path]
    found, query = [], f"limit={limit}"
    while True:
        page = client.get(path, query).json
        found.append([entry[field] for entry in page[path.rpartition("/")[2]]])
        if "cursor" not in page:
            break
        query = f"limit={limit}&cursor={page['cursor']}"

    assert [name for names in found for name in names] == expected
    assert [len(names) for names in found[:-1]] == [limit] * (len(found) - 1)
    reply = client.get(path, "limit=0")
    assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "limit")


def test_a_cursor_is_opaque_and_url_safe(queues: Client) -> None:
    cursor = queues.get("/queues", "limit=1").json["cursor"]

    assert set(cursor) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_a_cursor_works_for_its_own_listing_alone(queues: Client, bob: Client) -> None:
    cursor = queues.get("/queues", "limit=1").json["cursor"]

    for client, path, query in (
        (queues, "/queues", "prefix=a&"),
        (bob, "/queues", ""),
        (queues, "/keys", ""),
    ):
        reply = client.get(path, f"{query}cursor={cursor}")
        assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "cursor")


def test_a_thousand_tampered_cursors_are_refused(world: World, queues: Client) -> None:
    cursor = queues.get("/queues", "limit=2").json["cursor"]
    chance = random.Random(7)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=%7E"
    before = world.items("directory")

    for _ in range(1000):
        place = chance.randrange(len(cursor))
        forged = {
            0: cursor[:place],
            1: cursor[:place] + chance.choice(alphabet) + cursor[place + 1 :],
            2: cursor + chance.choice(alphabet),
            3: base64.urlsafe_b64encode(chance.randbytes(chance.randrange(1, 40))).decode(),
        }[chance.randrange(4)]
        if forged == cursor:
            continue
        reply = queues.get("/queues", f"cursor={forged}")
        assert (reply.status, reply.code) == (400, "InvalidParameter"), forged
        assert reply.json["parameter"] == "cursor"
    assert world.items("directory") == before
