"""A message with a text for each protocol: each subscription gets its own, also when it is late."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.dialects.sns_calls import make_queue, subscribe
from tests.dialects.test_sns_notifications import HOOK, QUEUE, only, receive
from tests.dialects.test_sns_topics import code

from cirrusmq_local.testing import Client, World

PLAIN_HOOK = "http://hooks.example/b"
DRINKS = "/topics/drinks/subscriptions"


def publish(sns: Any, arn: str, **texts: str) -> None:
    sns.publish(TopicArn=arn, Message=json.dumps(texts), MessageStructure="json")


def posted(world: World) -> dict[str, str]:
    """URL -> the text of its last post."""
    world.settle()
    return {url: json.loads(body)["Message"] for url, _, body in world.posts}


@pytest.mark.parametrize(
    ("texts", "queue", "http", "https"),
    [
        ({"default": "a", "email": "e"}, "a", "a", "a"),
        ({"default": "a", "sqs": "b"}, "b", "a", "a"),
        ({"default": "a", "http": "b", "https": "c"}, "a", "b", "c"),
        ({"default": "a", "sqs": "☕", "https": "☕"}, "☕", "a", "☕"),
    ],
)
def test_each_subscription_gets_the_text_of_its_protocol(
    world: World,
    sns: Any,
    sqs: Any,
    arn: str,
    texts: dict[str, str],
    queue: str,
    http: str,
    https: str,
    url: str,
) -> None:
    for endpoint in (QUEUE, HOOK, PLAIN_HOOK):
        subscribe(sns, arn, endpoint)
    kinds = {"n": {"DataType": "Number", "StringValue": "1"}}

    sns.publish(
        TopicArn=arn, Message=json.dumps(texts), MessageStructure="json", MessageAttributes=kinds
    )

    assert posted(world) == {HOOK: https, PLAIN_HOOK: http}
    found = only(world, sqs, url)
    assert (found["Message"], list(found["MessageAttributes"])) == (queue, ["n"])


def test_raw_posts_and_native_views_show_no_other_text(
    world: World, sns: Any, sqs: Any, shop: Client, arn: str, url: str
) -> None:
    subscribe(sns, arn, QUEUE, RawMessageDelivery="true")
    subscribe(sns, arn, HOOK, RawMessageDelivery="true")
    native = {"protocol": "http", "endpoint": "https://hooks.example/c"}
    assert shop.put(f"{DRINKS}/own", native).status == 201

    publish(sns, arn, default="tea", https="coffee")
    world.settle()

    posts = {post[0]: post for post in world.posts}
    assert posts[HOOK][2] == b"coffee"
    assert not any("http" in name and "attribute" in name for name in posts[HOOK][1])
    assert json.loads(posts["https://hooks.example/c"][2])["msgBody"] == "coffee"
    (message,) = receive(world, sqs, url)
    assert message["Body"] == "tea"
    assert "MessageAttributes" not in message


def test_a_bodys_filter_looks_at_the_text_of_its_own_subscription(
    world: World, sns: Any, sqs: Any, arn: str, url: str
) -> None:
    policy = {"FilterPolicyScope": "MessageBody", "FilterPolicy": json.dumps({"kind": ["tea"]})}
    for endpoint in (QUEUE, HOOK, PLAIN_HOOK):
        subscribe(sns, arn, endpoint, **policy)
    tea, other = '{"kind": "tea"}', '{"kind": "coffee"}'

    publish(sns, arn, default=other, https=tea)
    assert posted(world) == {HOOK: tea}
    assert receive(world, sqs, url) == []
    publish(sns, arn, default=other, sqs=tea)

    assert only(world, sqs, url)["Message"] == tea
    assert posted(world) == {HOOK: tea}


@pytest.mark.parametrize("size", [1, 50_000])
def test_a_dead_letter_is_the_posted_text(
    world: World, sns: Any, sqs: Any, shop: Client, arn: str, size: int
) -> None:
    """Also if the bucket has the texts: the dead letter has a content of its own then."""
    make_queue(sqs, "dead")
    redrive = json.dumps({"deadLetterTargetArn": QUEUE.replace("orders", "dead")})
    subscribe(sns, arn, HOOK, RedrivePolicy=redrive)
    name = shop.get(DRINKS).json["subscriptions"][0]["name"]
    waits = {"retry": {"policy": "custom", "waits": [1]}}
    assert shop.patch(f"{DRINKS}/{name}", waits).status == 200
    world.endpoint = lambda url: "status 500"
    tea, coffee = (
        f"{random.Random(kind).randbytes(size).hex()} {kind}" for kind in ("tea", "coffee")
    )
    publish(sns, arn, default=tea, https=coffee)
    assert bool(world.bucket.keys()) == (size > 1)
    for _ in range(4):
        world.settle()
        world.clock.pass_seconds(60)
        world.run("sweep")
    assert {json.loads(body)["Message"] for _, _, body in world.posts} == {coffee}
    assert len(world.posts) > 1
    (dead,) = shop.receive("dead", visibility_timeout_seconds=1)
    assert dead["body"] == coffee
    assert not dead.get("attributes")
    assert dead["dead_letter"]["subscription"] == name

    world.posts.clear()
    world.endpoint = lambda url: None
    world.clock.pass_seconds(60)
    begun = shop.post("/queues/dead/redrive", {})
    assert begun.status == 202, begun.json
    for _ in range(3):
        world.settle()
        world.run("sweep")
    assert posted(world) == {HOOK: coffee}


def test_texts_count_towards_the_size_of_a_message(sns: Any, arn: str) -> None:
    half = "x" * 131_000
    largest = {"default": half, "https": "y" * 131_000}
    publish(sns, arn, **largest)
    too_long = json.dumps({**largest, "http": "z" * 1_000})
    given = {"TopicArn": arn, "Message": too_long, "MessageStructure": "json"}
    assert code(sns.publish, **given) == "InvalidParameter"
    given["Message"] = json.dumps({"default": "a", "https": ""})
    assert code(sns.publish, **given) == "InvalidParameter"
