"""The callers: access keys, accounts, and grants between them."""

from __future__ import annotations

from tests.service.conftest import MakeQueue, TestQueue

from cirrusmq_local.testing import Client, World

FOREIGN = "/queues/alice:orders"


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

    def test_an_admin_names_any_account_which_comes_into_being(
        self, world: World, alice: Client
    ) -> None:
        key = alice.post("/keys", {"account": "carol"}).json

        carol = with_key(world, key)

        assert carol.put("/queues/hers").status == 201
        assert alice.get("/queues/hers").code == "QueueNotFound"
        listed = alice.get("/keys", "account=carol").json["keys"]
        assert [each["access_key_id"] for each in listed] == [key["access_key_id"]]
        assert alice.delete(f"/keys/{key['access_key_id']}").status == 204
        assert carol.get("/queues").status == 401

    def test_others_manage_their_own_accounts_keys_alone(self, world: World, bob: Client) -> None:
        key = bob.post("/keys").json

        assert bob.post("/keys", {"account": "bob"}).status == 201
        assert bob.post("/keys", {"account": "alice"}).code == "Forbidden"
        assert bob.post("/keys", {"admin": True}).code == "Forbidden"
        assert bob.get("/keys", "account=alice").code == "Forbidden"
        assert bob.delete(f"/keys/{key['access_key_id']}").status == 204

    def test_a_deleted_key_is_refused_at_once(self, world: World, alice: Client) -> None:
        key = alice.post("/keys").json
        client = with_key(world, key)
        assert client.get("/queues").status == 200

        alice.delete(f"/keys/{key['access_key_id']}")

        assert client.get("/queues").code == "Unauthenticated"
        assert alice.delete(f"/keys/{key['access_key_id']}").code == "KeyNotFound"

    def test_the_last_admin_key_stays(self, world: World, alice: Client) -> None:
        first = alice.authorization.removeprefix("Bearer ").partition(":")[0]
        assert alice.delete(f"/keys/{first}").code == "InUse"
        second = alice.post("/keys", {"admin": True}).json

        assert alice.delete(f"/keys/{first}").status == 204
        admin = with_key(world, second)
        assert admin.delete(f"/keys/{second['access_key_id']}").code == "InUse"
        assert admin.get("/queues").status == 200

    def test_keys_are_listed_page_by_page(self, alice: Client) -> None:
        made = {alice.post("/keys").json["access_key_id"] for _ in range(4)}
        first = alice.get("/keys", "limit=3").json
        second = alice.get("/keys", f"limit=3&cursor={first['cursor']}").json

        listed = [each["access_key_id"] for each in first["keys"] + second["keys"]]
        assert "cursor" not in second
        assert len(listed) == len(set(listed)) == 5
        assert made < set(listed)

    def test_the_account_comes_from_the_key_never_from_the_path(
        self, alice: Client, bob: Client, make_queue: MakeQueue
    ) -> None:
        make_queue()

        assert alice.get("/queues/alice:orders").status == 200
        assert bob.get("/queues/alice:orders").code == "Forbidden"
        assert bob.get("/queues/orders").code == "QueueNotFound"


class TestGrants:
    def test_a_grant_is_in_force_when_answered_and_until_it_is_taken_back(
        self, queue: TestQueue, bob: Client
    ) -> None:
        path = f"{queue.path}/grants/bob"
        assert bob.get(FOREIGN).code == "Forbidden"

        granted = queue.client.put(path, {"permission": "info"})

        assert granted.status == 200
        assert granted.json == {"account": "bob", "permission": "info"}
        assert bob.get(FOREIGN).status == 200
        assert queue.client.get(path).json == granted.json
        queue.client.put(path, {"permission": "send"})
        assert bob.get(FOREIGN).code == "Forbidden"
        assert queue.client.delete(path).status == 204
        assert bob.post(f"{FOREIGN}/messages", {"messages": [{"body": "x"}]}).code == "Forbidden"
        assert queue.client.delete(path).code == "GrantNotFound"
        assert queue.client.get(path).code == "GrantNotFound"

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
        queue.client.delete(queue.path)
        assert bob.get("/grants").json == {"grants": []}

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

    def test_a_grant_ends_with_its_queue(self, make_queue: MakeQueue, bob: Client) -> None:
        queue = make_queue()
        queue.client.put(f"{queue.path}/grants/bob", {"permission": "full"})
        queue.client.delete(queue.path)
        assert bob.get(FOREIGN).code == "Forbidden"

        make_queue()

        assert bob.get(FOREIGN).code == "Forbidden"
        assert queue.client.get(f"{queue.path}/grants").json == {"grants": []}
