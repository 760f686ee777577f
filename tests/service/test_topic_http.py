"""Posts to URLs, and the confirmation of new ones."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from standardwebhooks import Webhook
from tests.service.conftest import to_ms
from tests.service.crashes import before_transactions
from tests.service.topics import URL, Schedules, TestTopic

from cirrusmq_local.testing import Client, Reply, Subscriber, World


class TestRequests:
    def test_a_json_body_names_its_origin(self, world: World, topic: TestTopic) -> None:
        topic.subscribe("web", "http")
        (sent,) = topic.publish("héllo", tags=["a", "b"])

        ((url, headers, body),) = world.posts
        assert url == URL
        assert json.loads(body) == {
            "TopicOwner": "alice",
            "topicName": "news",
            "subscriptionName": "web",
            "msgId": sent["id"],
            "msgBody": "héllo",
            "publishTime": to_ms(sent["sent_at"]) // 1000,
            "msgTags": ["a", "b"],
        }
        assert headers["Content-Type"] == "text/plain; charset=utf-8"
        assert headers["x-cmq-message-id"] == headers["webhook-id"] == sent["id"]
        assert headers["x-cmq-message-tag"] == "a, b"
        assert headers["x-cmq-request-id"]

    def test_without_tags_there_is_no_tag_header(self, world: World, topic: TestTopic) -> None:
        topic.subscribe("web", "http")
        topic.publish("x")
        assert "x-cmq-message-tag" not in {name.lower() for name in world.posts[0][1]}

    def test_a_binary_body_is_base64_and_says_so(self, world: World, topic: TestTopic) -> None:
        topic.subscribe("web", "http")
        encoded = base64.b64encode(b"\xff\x00").decode()
        topic.try_publish([{"body_base64": encoded}])
        world.settle()

        content = json.loads(world.posts[0][2])
        assert (content["msgBody"], content["bodyEncoding"]) == (encoded, "base64")

    def test_simplified_is_the_raw_body(self, world: World, topic: TestTopic) -> None:
        web = topic.subscribe("web", "http", content_format="simplified")
        topic.try_publish([{"body_base64": base64.b64encode(b"\xff\x00").decode()}])
        world.settle()
        assert world.posts[0][2] == b"\xff\x00"
        web.patch(content_format="json")
        topic.publish("x")
        assert json.loads(world.posts[1][2])["msgBody"] == "x"

    def test_attributes_arrive_in_either_format(self, world: World, topic: TestTopic) -> None:
        web = topic.subscribe("web", "http")
        message = {"body": "x" * 40_000, "attributes": {"Region": "größe", "n": {"base64": "/w=="}}}
        topic.try_publish([message])
        world.settle()
        web.patch(content_format="simplified")
        topic.try_publish([message])
        world.settle()

        assert json.loads(world.posts[0][2])["msgAttributes"] == message["attributes"]
        headers = world.posts[1][1]
        assert headers["x-cmq-attribute-Region"] == "gr%C3%B6%C3%9Fe"
        assert headers["x-cmq-attribute-n"] == "%FF"

    def test_standard_webhooks_verifies_with_the_subscriptions_own_secret(
        self, monkeypatch: pytest.MonkeyPatch, world: World, topic: TestTopic
    ) -> None:
        import time

        monkeypatch.setattr(time, "time", lambda: world.clock.now_ms() / 1000)
        real = msgspec.structs.replace(
            world.core, real_seconds=lambda: int(__import__("datetime").datetime.now().timestamp())
        )
        world.core = real
        one = topic.subscribe("one", "http").shown["secret"]
        two = topic.subscribe("two", "http", endpoint="http://127.0.0.1:9/two").shown["secret"]
        topic.publish("x")

        assert one != two
        assert [len(base64.b64decode(each.removeprefix("whsec_"))) for each in (one, two)] == [
            24,
            24,
        ]
        for url, headers, body in world.posts:
            right, wrong = (one, two) if url == URL else (two, one)
            assert Webhook(right).verify(body, headers)
            with pytest.raises(Exception, match="signature"):
                Webhook(wrong).verify(body, headers)

    def test_a_failing_one_does_not_delay_the_others(
        self, world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        topic.subscribe("sick", "http")
        topic.subscribe("well", "http", endpoint="http://127.0.0.1:9/well")
        answer = world.endpoint
        world.endpoint = lambda url: answer(url) or ("timeout" if url == URL else None)
        delays = []
        for number in range(50):
            topic.publish(str(number))
            published_ms = world.clock.now_ms()
            (at,) = subscriber.times(str(number), "well")
            delays.append(at - published_ms)
            schedules.pass_seconds(7)

        assert delays == [0] * 50


Confirm = Callable[..., Reply]
"""Brings a token back."""


class TestConfirmation:
    @pytest.fixture
    def strict(self, world: World) -> World:
        """A deployment where new endpoints must confirm."""
        settings = msgspec.structs.replace(
            world.core.settings, confirm_endpoints=True, public_url="https://api.example.com"
        )
        world.core = msgspec.structs.replace(world.core, settings=settings)
        return world

    @pytest.fixture
    def confirm(self, strict: World) -> Confirm:
        """Bring a token back, without a key."""

        def bring(token: object, path: str = "/topics/news/subscriptions/web/confirm") -> Reply:
            nobody = {"content-type": "application/json"}
            return strict.call("POST", path, msgspec.json.encode({"token": token}), nobody)

        return bring

    @pytest.fixture
    def token(self, strict: World, topic: TestTopic) -> str:
        """The token that a new endpoint is sent."""
        topic.subscribe("web", "http")
        strict.settle()
        return str(json.loads(strict.posts[-1][2])["token"])

    def test_a_new_endpoint_is_sent_a_token(
        self, strict: World, topic: TestTopic, now: Any
    ) -> None:
        secret = topic.subscribe("web", "http").shown["secret"]
        strict.settle()

        ((url, headers, body),) = strict.posts
        content = json.loads(body)
        token = content.pop("token")
        assert (url, headers["x-cmq-type"]) == (URL, "SubscriptionConfirmation")
        assert len(token) >= 40
        assert content == {
            "Type": "SubscriptionConfirmation",
            "TopicOwner": "alice",
            "topicName": "news",
            "subscriptionName": "web",
            "confirmUrl": "https://api.example.com/topics/news/subscriptions/web/confirm",
            "expiresAt": now(3 * 86_400),
        }
        assert headers["webhook-signature"]
        assert secret not in body.decode() + str(headers)

    def test_until_it_confirms_nothing_is_delivered(
        self, strict: World, topic: TestTopic, token: str, confirm: Confirm
    ) -> None:
        web = f"{topic.path}/subscriptions/web"
        assert topic.client.get(web).json["state"] == "unconfirmed"
        (sent,) = topic.publish("before")
        assert (sent["matched"], len(strict.posts)) == (0, 1)
        reply = confirm(token)
        assert (reply.status, reply.text) == (204, "")
        assert topic.client.get(web).json["state"] == "delivering"
        topic.publish("after")

        assert [json.loads(body)["msgBody"] for _, _, body in strict.posts[1:]] == ["after"]

    @pytest.mark.parametrize("wrong", ["x", "alice.x", "bob.x", "alice.", "." * 256, "é"])
    def test_a_wrong_token_is_forbidden(self, token: str, confirm: Confirm, wrong: str) -> None:
        assert (confirm(wrong).status, confirm(wrong).code) == (403, "Forbidden")

    def test_a_used_an_old_or_anothers_token_is_forbidden(
        self, strict: World, topic: TestTopic, token: str, confirm: Confirm
    ) -> None:
        topic.subscribe("web-two", "http")
        for path in (
            "/topics/news/subscriptions/web-two/confirm",
            "/topics/news/subscriptions/nothing/confirm",
            "/topics/nothing/subscriptions/web/confirm",
            "/topics/News/subscriptions/web/confirm",
            f"/topics/{'n' * 2_000}/subscriptions/web/confirm",
            f"/topics/news/subscriptions/{'w' * 2_000}/confirm",
        ):
            assert (confirm(token, path).status, confirm(token, path).code) == (403, "Forbidden")
        strict.clock.pass_seconds(3 * 86_400 - 0.001)
        assert confirm(token).status == 204
        assert confirm(token).code == "Forbidden"

    def test_a_token_lives_3_days(self, strict: World, token: str, confirm: Confirm) -> None:
        strict.clock.pass_seconds(3 * 86_400)
        assert confirm(token).code == "Forbidden"

    def test_the_owner_has_a_new_token_sent(
        self, strict: World, topic: TestTopic, alice: Client, token: str, confirm: Confirm
    ) -> None:
        strict.clock.pass_seconds(4 * 86_400)
        assert alice.post(f"{topic.path}/subscriptions/web/confirm", {}).status == 204
        strict.settle()
        new = json.loads(strict.posts[-1][2])["token"]
        assert (len(strict.posts), new != token) == (2, True)
        assert confirm(token).code == "Forbidden"
        assert confirm(new).status == 204
        assert alice.post(f"{topic.path}/subscriptions/web/confirm", {}).status == 204
        strict.settle()
        assert len(strict.posts) == 2

    def test_a_new_token_and_a_change_at_the_same_time_both_take_effect(
        self,
        strict: World,
        topic: TestTopic,
        alice: Client,
        token: str,
        confirm: Confirm,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        web, tags = f"{topic.path}/subscriptions/web", {"tags": ["a"]}
        before_transactions(strict, monkeypatch, lambda: alice.patch(web, {"filter": tags}))
        assert alice.post(f"{web}/confirm", {}).status == 204
        strict.settle()
        assert alice.get(web).json["filter"] == tags
        assert confirm(token).code == "Forbidden"
        assert confirm(json.loads(strict.posts[-1][2])["token"]).status == 204

    def test_asking_for_a_token_needs_the_owners_key(
        self, strict: World, topic: TestTopic, token: str
    ) -> None:
        path = "/topics/news/subscriptions/web/confirm"
        reply = strict.call("POST", path, b"{}", {"content-type": "application/json"})
        assert reply.code == "Unauthenticated"

    def test_the_token_is_kept_nowhere_readable(self, strict: World, token: str) -> None:
        assert token not in str(strict.items("directory"))

    def test_an_endpoint_refusing_the_question_stays_unconfirmed(
        self, strict: World, topic: TestTopic
    ) -> None:
        strict.endpoint = lambda url: "status 404"
        web = topic.subscribe("web", "http")
        strict.settle()
        assert web.show()["state"] == "unconfirmed"
        assert strict.executions == []

    def test_queues_and_consumers_need_no_confirmation(
        self, strict: World, topic: TestTopic, alice: Client
    ) -> None:
        alice.put("/queues/inbox")
        topic.subscribe("box", "queue", endpoint="inbox")
        topic.subscribe("group")
        assert topic.matched() == 2

    def test_on_one_machine_nothing_must_confirm(self, topic: TestTopic) -> None:
        assert topic.subscribe("web", "http").show()["state"] == "delivering"
