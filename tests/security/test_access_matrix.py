"""Every call of the contract, made by each caller that may not make it, and by those that may.

The permission of a call is written down here, once, and compared with the OpenAPI document: a route
that is new there fails the first test until its callers have been decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.security.contract import CALLS, Call, Stage, names_for, set_stage

from cirrusmq_local.testing import Client

PERMISSIONS = ("send", "receive", "send_receive", "info", "admin", "full")
OWNERS_ALONE: tuple[str, ...] = ()
SENDERS = ("send", "send_receive", "full")
RECEIVERS = ("receive", "send_receive", "full")
READERS = ("info", "admin", "full")
ADMINS = ("admin", "full")
QUEUE = "/queues/{queue}"
OF_RECEIPTS = ("delete", "visibility", "give-back", "dead-letter")
MAY: dict[str, tuple[str, ...]] = {
    "PUT /queues/{queue}": ADMINS,
    "PATCH /queues/{queue}": ADMINS,
    "GET /queues/{queue}": READERS,
    "DELETE /queues/{queue}": OWNERS_ALONE,
    "POST /queues/{queue}/purge": ADMINS,
    "POST /queues/{queue}/rewind": ADMINS,
    # It writes to other queues of its owner, which no grant is about.
    "POST /queues/{queue}/redrive": OWNERS_ALONE,
    "POST /queues/{queue}/messages": SENDERS,
    "POST /queues/{queue}/messages/receive": RECEIVERS,
    "POST /queues/{queue}/messages/peek": RECEIVERS,
    "GET /queues/{queue}/messages/{id}": RECEIVERS,
    "DELETE /queues/{queue}/messages/{id}": SENDERS,
    "PATCH /queues/{queue}/messages/{id}": SENDERS,
    "GET /queues/{queue}/messages/{id}/reply": SENDERS,
    "POST /queues/{queue}/messages/{id}/reply": RECEIVERS,
    **{f"POST {QUEUE}/messages/{call}": RECEIVERS for call in OF_RECEIPTS},
    **{f"{call} {QUEUE}/receivers/{{receiver}}": ADMINS for call in ("PUT", "PATCH", "DELETE")},
    "GET /queues/{queue}/receivers/{receiver}": READERS,
    "GET /queues/{queue}/receivers": READERS,
    "GET /queues/{queue}/consumers": READERS,
    **{f"{call} {QUEUE}/grants/{{account}}": ADMINS for call in ("PUT", "GET", "DELETE")},
    "GET /queues/{queue}/grants": ADMINS,
}
"""Call of a queue -> permissions that another account needs one of."""
TOPIC_PERMISSIONS = ("publish", "subscribe", "publish_subscribe", "info", "admin", "full")
TOPIC, SUBSCRIPTION = "/topics/{topic}", "/topics/{topic}/subscriptions/{subscription}"
SUBSCRIBERS = ("subscribe", "publish_subscribe", "full")
PUBLISHERS = ("publish", "publish_subscribe", "full")
OF_OTHERS = {
    *(f"POST {TOPIC}/half/{call}" for call in ("commit", "rollback")),
    f"POST {SUBSCRIPTION}/redeliver",
}
"""For a new account, what was prepared, or published to others, is not there."""
MAY_ON_TOPIC: dict[str, tuple[str, ...]] = {
    f"PUT {TOPIC}": ADMINS,
    f"PATCH {TOPIC}": ADMINS,
    f"GET {TOPIC}": READERS,
    f"DELETE {TOPIC}": OWNERS_ALONE,
    f"POST {TOPIC}/messages": PUBLISHERS,
    **{f"POST {TOPIC}/half/{call}": PUBLISHERS for call in ("commit", "rollback", "receive")},
    f"GET {TOPIC}/messages": SUBSCRIBERS,
    f"GET {TOPIC}/messages/{{id}}": READERS,
    f"POST {TOPIC}/match": READERS,
    **{f"{call} {TOPIC}/grants/{{account}}": ADMINS for call in ("PUT", "GET", "DELETE")},
    f"GET {TOPIC}/grants": ADMINS,
    f"GET {TOPIC}/subscriptions": READERS,
    **{f"{call} {SUBSCRIPTION}": (*SUBSCRIBERS, "admin") for call in ("PUT", "PATCH", "DELETE")},
    f"GET {SUBSCRIPTION}": (*SUBSCRIBERS, "info", "admin"),
    f"GET {SUBSCRIPTION}/consumers": (*SUBSCRIBERS, "info", "admin"),
    **{
        f"POST {SUBSCRIPTION}/{work}": (*SUBSCRIBERS, "admin")
        for work in ("confirm", "secret", "pause", "resume", "retry", "rewind", "redeliver")
    },
    **{
        f"POST {SUBSCRIPTION}/messages/{call}": SUBSCRIBERS
        for call in ("receive", "peek", *OF_RECEIPTS)
    },
    f"GET {SUBSCRIPTION}/messages": SUBSCRIBERS,
}
"""Call of a topic -> permissions that another account needs one of; for subscriptions that this
account has made."""
OPEN = {"GET /health", "GET /openapi.json", "GET /docs/api", "GET /docs/api/{asset}"}
WITH_A_TOKEN = {"POST /topics/{topic}/subscriptions/{subscription}/confirm"}
CALLERS_OWN = {
    "GET /queues", "GET /topics", "GET /grants", "GET /schedules", "GET /keys", "POST /keys",
    "GET /reports/billing", "GET /reports/backlog", "GET /endpoints", "GET /operations",
    "GET /audit",
}  # fmt: skip
"""No name in the path: they speak of the key's account alone."""
IN_QUERY = {"GET /rates": READERS}
"""Calls whose query names the queues and topics -> permissions on each that are enough."""
BY_ID = {
    "GET /operations/{id}": "OperationNotFound",
    "DELETE /keys/{id}": "KeyNotFound",
    **{f"{method} /schedules/{{schedule}}": "ScheduleNotFound" for method in ("GET", "DELETE")},
    # A schedule names a queue of its own account alone.
    "PUT /schedules/{schedule}": "QueueNotFound",
    "POST /keys/{id}/rotate": "KeyNotFound",
}

OF_QUEUES = [call for call in CALLS if "{queue}" in call.route]
OF_TOPICS = [call for call in CALLS if "{topic}" in call.route]
WITH_A_KEY = [call for call in CALLS if call.needs_key]
MALFORMED = (b"{", b"\xff", b'{"unknown": 1}')
FOREIGN = {
    "queue": ("alice:orders", "alice:failed", "alice:nothing", "nobody:orders"),
    "topic": ("alice:news", "alice:nothing", "nobody:news"),
}
"""Of another account; the first one is what a grant is about."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """For calls that are refused: none of them may change it."""
    made = set_stage()
    yield made
    made.world.engine.close()


Granted = Callable[[str, str], Stage]


@pytest.fixture(scope="module")
def granted() -> Iterator[Granted]:
    """By name of the queue or topic and by permission, for calls that the grant does not allow."""
    made: dict[tuple[str, str], Stage] = {}

    def get(path: str, permission: str) -> Stage:
        if (path, permission) not in made:
            made[path, permission] = _grant(path, permission)
        return made[path, permission]

    yield get
    for stage in made.values():
        stage.world.engine.close()


def _grant(path: str, permission: str) -> Stage:
    """A stage on which bob has this permission."""
    stage = set_stage()
    if path == "/topics/news":
        _make_subscriptions_of_foreigner(stage)
    reply = stage.owner.put(f"{path}/grants/bob", {"permission": permission})
    assert reply.status == 200
    return stage


@pytest.fixture
def fresh() -> Iterator[Stage]:
    """For calls that do something."""
    made = set_stage()
    yield made
    made.world.engine.close()


def test_the_callers_of_every_route_are_decided() -> None:
    assert {str(call) for call in OF_QUEUES} == set(MAY)
    assert {str(call) for call in OF_TOPICS} == set(MAY_ON_TOPIC)
    assert {str(call) for call in CALLS if not call.needs_key} == OPEN | WITH_A_TOKEN
    rest = {str(call) for call in CALLS} - {str(call) for call in [*OF_QUEUES, *OF_TOPICS]}
    assert rest == OPEN | CALLERS_OWN | set(IN_QUERY) | set(BY_ID)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_the_owner_may_make_every_call(fresh: Stage, call: Call) -> None:
    """The refusals below are then for the caller, not for the call."""
    names = names_for(fresh, call)
    if "{topic}" in call.route and call.method == "PUT":
        names |= {"topic": "fresh"} if call.route == TOPIC else {}
        names["subscription"] = "fresh"

    reply = fresh.make(fresh.owner, call, names)

    if call.route.startswith("/reports/"):
        assert reply.code == "ReportNotFound"
    else:
        assert reply.status in call.succeeds_with, reply.text


@pytest.mark.parametrize("call", WITH_A_KEY, ids=str)
def test_nobody_is_answered_without_a_good_key(stage: Stage, call: Call) -> None:
    key, _, secret = stage.owner.authorization.removeprefix("Bearer ").partition(":")
    other = stage.foreigner.authorization.partition(":")[2]
    before = stage.everything()
    for authorization in (
        "",
        "Bearer",
        f"Bearer {key}",
        f"Bearer {key}:",
        f"Bearer {key}:{secret[:-1]}",
        f"Bearer {key}:{secret}x",
        f"Bearer {key}:{other}",
        f"Bearer {key}x:{secret}",
        f"Bearer {'k' * 5_000}:{secret}",
        f"Bearer {key.lower()}:{secret}",
        f"Basic {key}:{secret}",
    ):
        client = Client(stage.world, authorization)
        replies = [stage.make(client, call, names_for(stage, call))]
        path = call.path(names_for(stage, call))
        replies += [client.raw(call.method, path, body) for body in MALFORMED]
        stage.world.clock.pass_seconds(60)  # fewer in a minute than are refused unread
        for reply in replies:
            assert (reply.status, reply.code) == (401, "Unauthenticated"), authorization
            assert reply.headers["WWW-Authenticate"] == "Bearer"
    assert stage.everything() == before


@pytest.mark.parametrize("call", [*OF_QUEUES, *OF_TOPICS], ids=str)
def test_a_foreign_resource_is_forbidden_without_a_grant_existing_or_not(
    stage: Stage, call: Call
) -> None:
    kind = "queue" if "{queue}" in call.route else "topic"
    before = stage.everything()
    details = set()
    for name in FOREIGN[kind]:
        names = {**names_for(stage, call), kind: name}
        replies = [stage.make(stage.foreigner, call, names)]
        # What a token confirms, without a key, is read before anybody is refused.
        for body in MALFORMED if call.needs_key else ():
            replies.append(stage.foreigner.raw(call.method, call.path(names), body))
        for reply in replies:
            assert (reply.status, reply.code) == (403, "Forbidden"), (name, reply.text)
            details.add(reply.json["detail"].replace(name, kind))
    assert len(details) == 1, "what is refused tells nothing of what is there"
    assert stage.everything() == before


@pytest.mark.parametrize("call", [*OF_QUEUES, *OF_TOPICS], ids=str)
def test_a_grant_allows_the_calls_of_its_permission_and_no_others(
    granted: Granted, call: Call
) -> None:
    kind = "queue" if "{queue}" in call.route else "topic"
    own, other, *_ = FOREIGN[kind]
    path = f"/{kind}s/{own.removeprefix('alice:')}"
    for permission in PERMISSIONS if kind == "queue" else TOPIC_PERMISSIONS:
        allowed = permission in (MAY | MAY_ON_TOPIC)[str(call)]
        stage = (_grant if allowed else granted)(path, permission)
        names = {**names_for(stage, call), kind: own}
        names["subscription"] = f"bobs-{names['subscription']}"
        before = stage.everything()

        reply = stage.make(stage.foreigner, call, names)

        if allowed and str(call) in OF_OTHERS:
            assert (reply.status, reply.code) == (404, "MessageNotFound"), permission
        elif allowed:
            assert reply.status in call.succeeds_with, (permission, reply.text)
        else:
            assert (reply.status, reply.code) == (403, "Forbidden"), permission
            assert stage.everything() == before
        elsewhere = stage.make(stage.foreigner, call, {**names, kind: other})
        assert elsewhere.code == "Forbidden", "a grant is about one queue or topic"
        if allowed:
            stage.world.engine.close()


@pytest.mark.parametrize(
    "call", [call for call in OF_TOPICS if "{subscription}" in call.route], ids=str
)
def test_subscribe_is_about_the_accounts_own_subscriptions(call: Call) -> None:
    for permission in ("subscribe", "publish_subscribe"):
        stage = set_stage()
        grant = {"permission": permission}
        assert stage.owner.put("/topics/news/grants/bob", grant).status == 200
        names = {**names_for(stage, call), "topic": "alice:news"}
        before = stage.everything()
        missing = stage.make(stage.foreigner, call, {**names, "subscription": "nobodys"})
        if call.method != "PUT":
            reply = stage.make(stage.foreigner, call, names)
            assert (reply.status, reply.code) == (403, "Forbidden"), reply.text
            assert missing.json["detail"] == reply.json["detail"]
            assert stage.everything() == before
        else:
            assert missing.status == 201
            assert stage.make(stage.foreigner, call, names).code == "Forbidden"
        stage.world.engine.close()


def _make_subscriptions_of_foreigner(stage: Stage) -> None:
    """As those of the owner, `bobs-all` and so on; with a message in each."""
    grant = "/topics/news/grants/bob"
    assert stage.owner.put(grant, {"permission": "subscribe"}).status == 200
    for name in ("all", "everybody", "web"):
        shown = stage.owner.get(f"/topics/news/subscriptions/{name}").json
        given = {key: shown[key] for key in ("protocol", "mode", "endpoint") if key in shown}
        path = f"/topics/alice:news/subscriptions/bobs-{name}"
        reply = stage.foreigner.put(path, given)
        assert (reply.status, reply.json["made_by"]) == (201, "bob")
    assert stage.owner.delete(grant).status == 204
    stage.world.settle()


@pytest.mark.parametrize("call", [*OF_QUEUES, *OF_TOPICS], ids=str)
def test_a_name_is_looked_up_in_the_keys_own_account(stage: Stage, call: Call) -> None:
    if str(call) in ("PUT /queues/{queue}", "PUT /topics/{topic}"):
        return  # makes one of that name in its own account
    before = stage.everything()

    reply = stage.make(stage.foreigner, call, names_for(stage, call))

    assert (reply.status, reply.code) == (
        404,
        "QueueNotFound" if "{queue}" in call.route else "TopicNotFound",
    )
    assert stage.everything() == before


@pytest.mark.parametrize("call", [call for call in CALLS if str(call) in BY_ID], ids=str)
def test_another_accounts_ids_are_not_found(stage: Stage, call: Call) -> None:
    before = stage.everything()

    reply = stage.make(stage.foreigner, call, names_for(stage, call))

    assert (reply.status, reply.code) == (404, BY_ID[str(call)])
    assert stage.everything() == before


@pytest.mark.parametrize(
    ("path", "kind", "permissions"),
    [("/queues/orders", "queues", PERMISSIONS), ("/topics/news", "topics", TOPIC_PERMISSIONS)],
)
@pytest.mark.parametrize("call", sorted(IN_QUERY))
def test_each_name_in_a_query_needs_a_permission(
    granted: Granted, call: str, path: str, kind: str, permissions: tuple[str, ...]
) -> None:
    method, _, route = call.partition(" ")
    name, other = path.rpartition("/")[2], {"queues": "failed", "topics": "nothing"}[kind]
    for permission in permissions:
        caller = granted(path, permission).foreigner
        reply = caller.call(method, route, None, f"{kind}=alice:{name}")
        assert reply.status == (200 if permission in IN_QUERY[call] else 403), permission
        both = caller.call(method, route, None, f"{kind}=alice:{name},alice:{other}")
        assert both.code == "Forbidden"


@pytest.mark.parametrize("call", [call for call in CALLS if str(call) in CALLERS_OWN], ids=str)
def test_listings_show_the_keys_own_account_alone(stage: Stage, call: Call) -> None:
    """The owner's resources have these names; the foreigner's answers have none of them."""
    if call.method == "POST":
        return
    reply = stage.make(stage.foreigner, call, {})

    for name in ("orders", "failed", "news", "alice", stage.names["/keys/{id}"]):
        assert name not in reply.text


def test_keys_of_others_need_an_admin_key(stage: Stage) -> None:
    admin = stage.owner.authorization.removeprefix("Bearer ").partition(":")[0]
    plain = stage.owner.post("/keys").json
    own = Client(stage.world, f"Bearer {plain['access_key_id']}:{plain['secret']}")
    before = stage.everything()
    for client in (stage.foreigner, own):
        for body in ({"admin": True}, {"account": "carol"}, {"account": "carol", "admin": True}):
            assert client.post("/keys", body).code == "Forbidden"
        assert client.get("/keys", "account=carol").code == "Forbidden"
    assert own.delete(f"/keys/{admin}").code == "Forbidden"
    assert own.post(f"/keys/{admin}/rotate").code == "Forbidden"
    assert stage.foreigner.post(f"/keys/{admin}/rotate").code == "KeyNotFound"
    assert stage.foreigner.delete(f"/keys/{admin}").code == "KeyNotFound"
    assert stage.foreigner.get("/keys", "account=alice").code == "Forbidden"
    assert stage.everything() == before


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("PUT /queues/mine", {"dead_letter": {"queue": "alice:orders", "max_receives": 1}}),
        ("PATCH /queues/own", {"dead_letter": {"queue": "alice:orders", "max_receives": 1}}),
        ("POST /queues/own/redrive", {"to": "alice:orders"}),
        ("PUT /topics/own/subscriptions/one", {"protocol": "queue", "endpoint": "alice:orders"}),
        ("PATCH /topics/own/subscriptions/pull", {"dead_letter_queue": "alice:orders"}),
    ],
)
def test_a_body_cannot_name_a_foreign_queue_whatever_is_granted(
    fresh: Stage, call: str, body: dict[str, object]
) -> None:
    fresh.owner.put("/queues/orders/grants/bob", {"permission": "full"})
    fresh.foreigner.put("/queues/own")
    fresh.foreigner.put("/topics/own")
    fresh.foreigner.put("/topics/own/subscriptions/pull", {"protocol": "pull"})
    before = fresh.everything()
    method, _, path = call.partition(" ")

    reply = fresh.foreigner.call(method, path, body)

    assert (reply.status, reply.code) == (400, "InvalidParameter"), reply.text
    assert fresh.everything() == before


@pytest.mark.parametrize("token", ["", "alice.", "alice." + "0" * 48, "bob." + "0" * 48, "x" * 257])
def test_a_wrong_token_confirms_nothing(stage: Stage, token: str) -> None:
    before = stage.everything()
    path = "/topics/news/subscriptions/all/confirm"

    reply = Client(stage.world, "").post(path, {"token": token})

    assert reply.code == ("Forbidden" if 1 <= len(token) <= 256 else "InvalidParameter")
    assert stage.everything() == before
