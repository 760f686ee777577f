"""Every call of the contract, made with keys of every scope; expiry, rotation, keys that make keys.

The right of a call is written down here once more, so that the service's own tables are compared
with something: a route that is new fails the first test until it is decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.security.contract import CALLS, Call, Stage, names_for, set_stage

from cirrusmq_local.testing import Client, Reply, World

LEASE = ("receive", "peek", "delete", "visibility", "give-back", "dead-letter")
Q, T = "/queues/{queue}", "/topics/{topic}"
R, S = f"{Q}/receivers/{{receiver}}", f"{T}/subscriptions/{{subscription}}"
NEEDS: dict[str, set[str]] = {
    f"POST {Q}/messages": {"send"},
    f"POST {T}/messages": {"send"},
    **{f"POST {holder}/messages/{call}": {"receive"} for holder in (Q, S) for call in LEASE},
    f"GET {Q}/messages/{{id}}": {"receive"},
    f"DELETE {Q}/messages/{{id}}": {"send"},
    f"PATCH {Q}/messages/{{id}}": {"send"},
    f"GET {Q}/messages/{{id}}/reply": {"send"},
    f"POST {Q}/messages/{{id}}/reply": {"receive"},
    f"GET {T}/messages": {"receive"},
    f"GET {T}/messages/{{id}}": {"receive"},
    f"GET {S}/messages": {"receive"},
    **{
        f"GET {shown}": {"send", "receive", "manage"}
        for shown in (Q, f"{Q}/receivers", R, T, f"{T}/subscriptions", S)
    },
    **{f"GET {holder}/consumers": {"send", "receive", "manage"} for holder in (Q, S)},
    **{
        f"{method} {resource}": {"manage"}
        for resource in (Q, R, T, S)
        for method in ("PUT", "PATCH", "DELETE")
    },
    **{f"POST {Q}/{work}": {"manage"} for work in ("purge", "rewind", "redrive")},
    **{f"GET {holder}/grants": {"manage"} for holder in (Q, T)},
    **{
        f"{method} {holder}/grants/{{account}}": {"manage"}
        for holder in (Q, T)
        for method in ("GET", "PUT", "DELETE")
    },
    **{f"POST {T}/half/{call}": {"send"} for call in ("commit", "rollback", "receive")},
    f"POST {T}/match": {"send", "receive", "manage"},
    **{
        f"POST {S}/{work}": {"manage"}
        for work in ("confirm", "secret", "pause", "resume", "retry", "rewind", "redeliver")
    },
    "GET /operations/{id}": {"manage"},
    "GET /rates": {"send", "receive", "manage"},
    **{f"{method} /schedules/{{schedule}}": {"manage"} for method in ("PUT", "GET", "DELETE")},
}
"""Call of a queue or topic -> the rights of which one on it is enough."""
OF_ACCOUNT = {"GET /queues", "GET /topics", "GET /grants", "GET /schedules"} | {
    f"GET /reports/{name}" for name in ("billing", "backlog")
}
OF_KEYS = {"GET /keys", "POST /keys", "POST /keys/{id}/rotate", "DELETE /keys/{id}"}
SHOWS_AUDIT = {"GET /audit"}
"""They need `manages_keys` as those of keys do, and `manage` on all besides."""
OF_ANY_RIGHT = {"GET /endpoints"}
OF_ANY_MANAGE = {"GET /operations"}
"""It leaves out what the key does not manage."""
OPEN = {"GET /health", "GET /openapi.json", "GET /docs/api", "GET /docs/api/{asset}"}
RIGHTS = ("send", "receive", "manage")
HERE = {"queues": ["orders", "failed"], "topics": ["news"]}
ELSEWHERE = {"queues": ["news", "order", "bob:orders"], "topics": ["orders", "new"]}
CHECKED = [call for call in CALLS if str(call) not in OPEN]


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = set_stage()
    yield made
    made.world.engine.close()


def key(client: Client, **fields: Any) -> dict[str, Any]:
    reply = client.post("/keys", fields)
    assert reply.status == 201, reply.text
    return dict(reply.json)


def with_key(world: World, made: dict[str, Any]) -> Client:
    return Client(world, f"Bearer {made['access_key_id']}:{made['secret']}")


def with_scope(stage: Stage, scope: Any, **fields: Any) -> Client:
    return with_key(stage.world, key(stage.owner, scope=scope, **fields))


def test_the_right_of_every_route_is_decided() -> None:
    assert {str(call) for call in CALLS} == {
        *(*NEEDS, *OF_ACCOUNT, *OF_KEYS, *SHOWS_AUDIT, *OF_ANY_RIGHT, *OF_ANY_MANAGE, *OPEN)
    }


@pytest.mark.parametrize("call", CHECKED, ids=str)
def test_a_scope_allows_the_calls_of_its_rights_and_no_others(stage: Stage, call: Call) -> None:
    scopes: list[tuple[set[str], Any, bool]] = [
        *(({right}, {right: HERE}, False) for right in RIGHTS),
        *(({right}, {right: "all"}, True) for right in RIGHTS),
        *((set(), {right: ELSEWHERE}, False) for right in RIGHTS),
        (set(), {}, False),
    ]
    if str(call) in NEEDS:
        refused = [held for held in scopes if not held[0] & NEEDS[str(call)]]
    elif str(call) in OF_ANY_RIGHT:
        refused = scopes[-1:]
    elif str(call) in OF_ANY_MANAGE:
        refused = [held for held in scopes if "manage" not in held[1]]
    elif str(call) in OF_ACCOUNT:
        refused = [held for held in scopes if not (held[0] == {"manage"} and held[2])]
    else:
        refused = scopes
    clients = [with_scope(stage, scope) for _, scope, _ in refused]
    before = stage.everything()
    for client in clients:
        reply = stage.make(client, call, names_for(stage, call))
        assert (reply.status, reply.code) == (403, "Forbidden"), reply.text
        assert "access key" in reply.json["detail"]
    assert stage.everything() == before

    for held in scopes:
        if held not in refused:
            client = with_scope(stage, held[1])
            assert stage.make(client, call, names_for(stage, call)).status not in (401, 403)


@pytest.mark.parametrize(
    ("scope", "call", "told"),
    [
        ({}, "POST /queues/orders/messages", "lacks send on queue orders"),
        ({"send": HERE}, "POST /queues/other/messages", "lacks send on queue other"),
        ({"send": HERE}, "POST /queues/bob:orders/messages", "lacks send on queue bob:orders"),
        ({}, "GET /queues/orders", "lacks send or receive or manage on queue orders"),
        ({"manage": HERE}, "GET /queues", "lacks manage on all queues and topics"),
        ({"manage": "all"}, "POST /keys", "lacks manages_keys"),
    ],
)
def test_a_refusal_names_the_keys_missing_right(
    stage: Stage, scope: Any, call: str, told: str
) -> None:
    method, _, path = call.partition(" ")
    assert told in with_scope(stage, scope).call(method, path, {}).json["detail"]


def test_a_queue_may_be_named_with_its_own_account(stage: Stage) -> None:
    client = with_scope(stage, {"send": {"queues": ["alice:orders"]}})
    for name in ("orders", "alice:orders"):
        assert client.post(f"/queues/{name}/messages", {"messages": [{"body": "x"}]}).status == 201


def test_a_scope_gives_nothing_without_a_grant(stage: Stage) -> None:
    made = key(stage.owner, account="bob", scope={"send": {"queues": ["alice:orders"]}})
    client = with_key(stage.world, made)
    send = {"messages": [{"body": "x"}]}
    assert client.post("/queues/alice:orders/messages", send).code == "Forbidden"
    stage.owner.put("/queues/orders/grants/bob", {"permission": "full"})
    assert client.post("/queues/alice:orders/messages", send).status == 201
    assert client.get("/queues/alice:orders").status == 200
    assert client.post("/queues/alice:orders/purge").code == "Forbidden"


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("PUT /queues/orders", {"dead_letter": {"queue": "failed", "max_receives": 1}}),
        ("PATCH /queues/orders", {"dead_letter": {"queue": "failed", "max_receives": 1}}),
        ("POST /queues/orders/redrive", {"to": "failed"}),
        ("PUT /topics/news/subscriptions/copy", {"protocol": "queue", "endpoint": "failed"}),
        ("PUT /topics/news/subscriptions/p", {"protocol": "pull", "dead_letter_queue": "failed"}),
        ("PATCH /topics/news/subscriptions/all", {"dead_letter_queue": "failed"}),
    ],
)
def test_messages_are_led_only_into_queues_of_the_scope(
    stage: Stage, call: str, body: dict[str, Any]
) -> None:
    narrow = {"queues": ["orders"], "topics": ["news"]}
    client = with_scope(stage, {"manage": narrow})
    wider = with_scope(stage, {"manage": narrow, "send": {"queues": ["failed"]}})
    before = stage.everything()
    method, _, path = call.partition(" ")

    reply = client.call(method, path, body)

    assert reply.code == "Forbidden"
    assert "lacks send or manage on queue failed" in reply.json["detail"]
    assert stage.everything() == before
    assert wider.call(method, path, body).code != "Forbidden"


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({"scope": {"sned": "all"}}, "scope.sned"),
        ({"scope": {"send": "some"}}, "scope.send"),
        ({"scope": {"send": {"queues": "orders"}}}, "scope.send.queues"),
        ({"scope": {"send": {"queues": ["a b"]}}}, "scope.send.queues"),
        ({"scope": {"send": {"queues": ["q"] * 51}}}, "scope.send.queues"),
        ({"scope": {"send": {"topics": ["bob:"]}}}, "scope.send.topics"),
        ({"scope": {"send": "all"}, "admin": True}, "scope"),
        ({"expires_at": "tomorrow"}, "expires_at"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"manages_keys": 1}, "manages_keys"),
    ],
)
def test_an_impossible_key_is_refused(stage: Stage, body: dict[str, Any], parameter: str) -> None:
    before = stage.everything()
    reply = stage.owner.post("/keys", body)
    assert (reply.status, reply.json.get("parameter")) == (400, parameter), reply.text
    assert stage.everything() == before


class TestKeysThatManageKeys:
    def test_an_ordinary_key_makes_none_unless_it_may(self, stage: Stage) -> None:
        plain = with_key(stage.world, key(stage.owner))
        other = key(stage.owner)["access_key_id"]
        replies = [plain.post("/keys"), plain.delete(f"/keys/{other}")]
        replies.append(plain.post(f"/keys/{other}/rotate"))
        assert {reply.code for reply in replies} == {"Forbidden"}
        assert plain.get("/keys").status == 200
        may = with_key(stage.world, key(stage.owner, manages_keys=True))
        made = key(may)
        assert may.delete(f"/keys/{made['access_key_id']}").status == 204

    def test_a_key_of_an_older_form_goes_on_as_it_did(self, stage: Stage) -> None:
        """Its document has none of the newer fields."""
        from cirrusmq.access.keys import AccessKey
        from cirrusmq.storage import directory, directory_writes
        from cirrusmq.storage.directory import access_key_key

        made, core = key(stage.owner), stage.world.core
        found = directory.read(core, access_key_key(made["access_key_id"]), AccessKey)
        assert found is not None
        older = {
            name: getattr(found.value, name)
            for name in ("id", "account", "admin", "created_ms", "secret_sha256", "description")
        }
        core.store.transact(
            [directory_writes.put(core, access_key_key(made["access_key_id"]), older)]
        )
        stage.world.clock.pass_seconds(61)

        client = with_key(stage.world, made)

        assert client.get("/queues").status == 200
        assert client.post("/keys").status == 201

    @pytest.mark.parametrize(
        "wider",
        [
            {},
            {"scope": {"send": "all"}},
            {"scope": {"send": {"queues": ["orders", "failed"]}}},
            {"scope": {"send": {"queues": ["orders"]}, "receive": {"queues": ["orders"]}}},
            {"scope": {"send": {"topics": ["orders"]}}},
            {"scope": {"send": {"queues": ["orders"]}}, "expires_at": "2099-01-01T00:00:00Z"},
        ],
        ids=str,
    )
    def test_it_manages_no_wider_or_longer_living_keys(
        self, stage: Stage, wider: dict[str, Any]
    ) -> None:
        own = {"scope": {"send": {"queues": ["orders"]}}, "expires_at": "2098-01-01T00:00:00Z"}
        maker = with_key(stage.world, key(stage.owner, manages_keys=True, **own))
        there = key(stage.owner, **wider)["access_key_id"]
        before = stage.everything()

        assert maker.post("/keys", wider).code == "Forbidden"
        assert maker.post(f"/keys/{there}/rotate").code == "Forbidden"
        assert maker.delete(f"/keys/{there}").code == "Forbidden"

        assert stage.everything() == before
        narrower = {"scope": {"send": {"queues": ["alice:orders"]}}}
        made = maker.post("/keys", {**narrower, "expires_at": "2097-01-01T00:00:00Z"})
        assert made.status == 201
        assert maker.delete(f"/keys/{made.json['access_key_id']}").status == 204


def statuses(*clients: Client) -> list[int]:
    return [client.get("/queues").status for client in clients]


class TestExpiry:
    def test_an_expired_key_is_refused_with_the_reason(self, stage: Stage) -> None:
        from cirrusmq.base.timestamps import format_time

        ends = format_time(stage.world.clock.now_ms() + 60_000)
        made = key(stage.owner, expires_at=ends)
        client = with_key(stage.world, made)
        assert made["expires_at"] == ends
        stage.world.clock.pass_seconds(59)
        assert client.get("/queues").status == 200
        stage.world.clock.pass_seconds(1)
        reply = client.get("/queues")
        assert (reply.status, reply.code) == (401, "Unauthenticated")
        assert "has expired" in reply.json["detail"]
        wrong = Client(stage.world, client.authorization + "x")
        assert "has expired" not in wrong.get("/queues").text


class TestRotation:
    def rotate(self, stage: Stage, made: dict[str, Any], **fields: Any) -> tuple[Client, Reply]:
        reply = stage.owner.post(f"/keys/{made['access_key_id']}/rotate", fields)
        assert reply.status == 200, reply.text
        return with_key(stage.world, reply.json), reply

    def test_both_secrets_are_good_for_a_while(self, stage: Stage) -> None:
        made = key(stage.owner)
        old = with_key(stage.world, made)
        new, reply = self.rotate(stage, made, grace_seconds=600)
        assert reply.json["earlier_secret_until"] is not None
        assert statuses(old, new) == [200, 200]
        stage.world.clock.pass_seconds(599)
        assert statuses(old, new) == [200, 200]
        stage.world.clock.pass_seconds(1)
        assert statuses(old, new) == [401, 200]

    def test_without_a_time_the_secret_before_ends_at_once(self, stage: Stage) -> None:
        made = key(stage.owner)
        new, reply = self.rotate(stage, made, grace_seconds=0)
        assert statuses(with_key(stage.world, made), new) == [401, 200]
        assert reply.json["earlier_secret_until"] is None

    def test_a_repeated_rotation_leaves_the_secret_in_use(self, stage: Stage) -> None:
        """Its first answer may have been lost."""
        made = key(stage.owner)
        old = with_key(stage.world, made)
        lost, first = self.rotate(stage, made, grace_seconds=600)
        stage.world.clock.pass_seconds(100)
        new, second = self.rotate(stage, made, grace_seconds=6_000)
        assert statuses(old, lost, new) == [200, 401, 200]
        until = "earlier_secret_until"
        assert first.json[until] == second.json[until]
        stage.world.clock.pass_seconds(500)
        assert statuses(old, new) == [401, 200]
        newest, _ = self.rotate(stage, made, grace_seconds=600)
        assert statuses(old, new, newest) == [401, 200, 200]

    def test_rights_and_names_stay(self, stage: Stage) -> None:
        made = key(stage.owner, scope={"send": HERE}, description="for the nightly run")
        new, reply = self.rotate(stage, made)
        kept = ("access_key_id", "account", "admin", "scope", "description", "created_at")
        assert {name: reply.json[name] for name in kept} == {name: made[name] for name in kept}
        assert new.get("/queues").code == "Forbidden"
        listed = stage.owner.get("/keys").json["keys"]
        (shown,) = [each for each in listed if each["access_key_id"] == made["access_key_id"]]
        assert shown["earlier_secret_until"] == reply.json["earlier_secret_until"]

    @pytest.mark.parametrize("grace", [-1, 604_801, "1", 1.5])
    def test_an_impossible_time_is_refused(self, stage: Stage, grace: Any) -> None:
        made = key(stage.owner)
        path = f"/keys/{made['access_key_id']}/rotate"
        reply = stage.owner.post(path, {"grace_seconds": grace})
        assert (reply.status, reply.json["parameter"]) == (400, "grace_seconds")
        assert with_key(stage.world, made).get("/queues").status == 200


class TestLastUse:
    def shown(self, stage: Stage, made: dict[str, Any]) -> Any:
        listed = stage.owner.get("/keys").json["keys"]
        return {each["access_key_id"]: each["last_used_at"] for each in listed}[
            made["access_key_id"]
        ]

    def test_it_is_the_day_of_the_last_call(self, stage: Stage) -> None:
        made = key(stage.owner)
        assert self.shown(stage, made) is None
        client = with_key(stage.world, made)
        client.get("/queues")
        first = self.shown(stage, made)
        assert first.endswith("T00:00:00.000Z")
        stage.world.clock.pass_seconds(86_400)
        assert self.shown(stage, made) == first
        client.get("/queues")
        assert self.shown(stage, made) > first

    def test_it_costs_one_write_unit_a_day(self, stage: Stage) -> None:
        client = with_key(stage.world, key(stage.owner))
        assert stage.world.write_units(lambda: client.get("/topics")) == 1
        for _ in range(10):
            stage.world.clock.pass_seconds(3_600)
            assert stage.world.write_units(lambda: client.get("/topics")) == 0
        stage.world.clock.pass_seconds(86_400)
        assert stage.world.write_units(lambda: client.get("/topics")) == 1

    def test_a_refused_call_is_no_use(self, stage: Stage) -> None:
        made = key(stage.owner)
        Client(stage.world, f"Bearer {made['access_key_id']}:wrong").get("/queues")
        assert self.shown(stage, made) is None

    def test_an_older_day_does_not_replace_a_newer_one(self, stage: Stage) -> None:
        """Two environments, one of which has a late clock."""
        from cirrusmq.access.key_cache import last_uses, note_use

        world = stage.world
        note_use(world.core, "K")
        late = world.clock.now_ms() - 86_400_000
        world.clock._now_ms = late
        import msgspec

        note_use(msgspec.structs.replace(world.core, memories={}), "K")
        assert last_uses(world.core, ["K"])["K"] > late
