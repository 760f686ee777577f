"""The callers: access keys, accounts, and grants between them."""

from __future__ import annotations

import pytest
from tests.service.conftest import TestQueue

from cirrusmq_local.testing import Client, World

FOREIGN = "/queues/alice:orders"
SHARED = [("/queues/orders", "info", "send"), ("/topics/news", "info", "publish")]
"""A queue and a topic, a permission to see it, and one that does not allow that."""


def foreign_path(path: str) -> str:
    """The path by which another account calls what is alice's."""
    kind, _, name = path.rpartition("/")
    return f"{kind}/alice:{name}"


def with_key(world: World, key: dict[str, str]) -> Client:
    return Client(world, f"Bearer {key['access_key_id']}:{key['secret']}")


class TestKeys:
    def test_a_new_key_speaks_for_its_account_and_is_shown_once(
        self, world: World, alice: Client
    ) -> None:
        reply = alice.post("/keys", {"description": "for tests"})

        assert reply.status == 201
        key = reply.json
        assert key.keys() >= {"access_key_id", "secret", "account", "admin", "created_at"}
        assert (key["account"], key["admin"]) == ("alice", False)
        with_key(world, key).put("/queues/mine")
        assert alice.get("/queues/mine").status == 200
        listed = alice.get("/keys").json["keys"]
        assert key["access_key_id"] in {each["access_key_id"] for each in listed}
        assert all("secret" not in each for each in listed)
        for table in ("directory", "messages", "usage"):
            assert key["secret"] not in str(world.items(table))

    def test_an_admin_names_any_account_and_deletes_its_keys_at_once(
        self, world: World, alice: Client
    ) -> None:
        key = alice.post("/keys", {"account": "carol"}).json

        carol = with_key(world, key)

        assert carol.put("/queues/hers").status == 201
        assert alice.get("/queues/hers").code == "QueueNotFound"
        listed = alice.get("/keys", "account=carol").json["keys"]
        assert [each["access_key_id"] for each in listed] == [key["access_key_id"]]
        assert alice.delete(f"/keys/{key['access_key_id']}").status == 204
        assert carol.get("/queues").code == "Unauthenticated"

    def test_others_manage_their_own_accounts_keys(self, bob: Client) -> None:
        key = bob.post("/keys").json

        assert bob.post("/keys", {"account": "bob"}).status == 201

        assert bob.delete(f"/keys/{key['access_key_id']}").status == 204

    def test_the_last_admin_key_stays(self, world: World, alice: Client) -> None:
        first = alice.authorization.removeprefix("Bearer ").partition(":")[0]
        assert alice.delete(f"/keys/{first}").code == "InUse"
        second = alice.post("/keys", {"admin": True}).json

        assert alice.delete(f"/keys/{first}").status == 204
        admin = with_key(world, second)
        assert admin.delete(f"/keys/{second['access_key_id']}").code == "InUse"
        assert admin.get("/queues").status == 200


class TestGrants:
    @pytest.mark.parametrize(("path", "allowed", "other"), SHARED)
    def test_a_grant_is_in_force_when_answered_and_until_it_is_taken_back(
        self, alice: Client, bob: Client, path: str, allowed: str, other: str
    ) -> None:
        alice.put(path)
        grant, foreign = f"{path}/grants/bob", foreign_path(path)
        assert bob.get(foreign).code == "Forbidden"

        granted = alice.put(grant, {"permission": allowed})

        assert granted.status == 200
        assert granted.json == {"account": "bob", "permission": allowed}
        assert bob.get(foreign).json == alice.get(path).json
        assert alice.get(grant).json == granted.json
        alice.put(grant, {"permission": other})
        assert bob.get(foreign).code == "Forbidden"
        assert alice.delete(grant).status == 204
        message = {"messages": [{"body": "x"}]}
        assert bob.post(f"{foreign}/messages", message).code == "Forbidden"
        assert alice.delete(grant).code == alice.get(grant).code == "GrantNotFound"

    @pytest.mark.parametrize("path", [path for path, *_ in SHARED])
    def test_a_grant_ends_with_its_queue_or_topic(
        self, alice: Client, bob: Client, path: str
    ) -> None:
        alice.put(path)
        alice.put(f"{path}/grants/bob", {"permission": "full"})
        assert bob.get(foreign_path(path)).status == 200
        (shared,) = bob.get("/grants").json["grants"]
        assert (shared["account"], shared["permission"]) == ("alice", "full")
        alice.delete(path)
        assert bob.get(foreign_path(path)).code == "Forbidden"

        assert alice.put(path).status == 201

        assert bob.get(foreign_path(path)).code == "Forbidden"
        assert alice.get(f"{path}/grants").json == {"grants": []}
        assert bob.get("/grants").json == {"grants": []}

    def test_grants_are_listed_for_both_sides(self, queue: TestQueue, bob: Client) -> None:
        queue.client.put(f"{queue.path}/grants/bob", {"permission": "send"})
        queue.client.put(f"{queue.path}/grants/carol", {"permission": "full"})

        assert queue.client.get(f"{queue.path}/grants").json == {
            "grants": [
                {"account": "bob", "permission": "send"},
                {"account": "carol", "permission": "full"},
            ]
        }
        (shared,) = bob.get("/grants").json["grants"]
        assert shared == {"queue": "alice:orders", "account": "alice", "permission": "send"}

    def test_two_accounts_share_one_queue(self, queue: TestQueue, bob: Client) -> None:
        queue.client.put(f"{queue.path}/grants/bob", {"permission": "send_receive"})
        bob.send("alice:orders", "from bob")
        queue.send("from alice")

        received = bob.receive("alice:orders") + bob.receive("alice:orders")

        assert sorted(message["body"] for message in received) == ["from alice", "from bob"]
        receipts = [message["receipt"] for message in received]
        reply = bob.post(f"{FOREIGN}/messages/delete", {"receipts": receipts})
        assert reply.json["failed"] == []
        assert queue.counts() == {}
