"""What a URL answered to posts that failed, for a subscription that asks for it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.faults import Throttled
from tests.service.topics import Schedules, TestTopic

from cirrusmq.model.answer_sample import AnswerSample
from cirrusmq_local.testing import Posting, World

SAMPLE = AnswerSample(headers=(("Content-Type", "text/plain"),), body=b"no room")
RETRIES = {"retry": {"policy": "custom", "waits": [3, 3, 3, 3, 3, 3]}, "max_in_flight": 1}


def answer(world: World, *answers: tuple[str | None, AnswerSample | None]) -> None:
    """Have the URL answer so, the last one for good; each post takes 40 ms."""
    left = list(answers)

    def post(url: str, headers: object, body: bytes) -> Posting:
        world.clock.pass_seconds(0.04)
        error, sample = left.pop(0) if len(left) > 1 else left[0]
        return Posting(error, sample=sample)

    world.post = post  # type: ignore[method-assign]


def kept(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items("messages") if item["pk"]["S"].endswith("#answers")]


def test_nothing_is_kept_unless_it_is_asked_for(world: World, topic: TestTopic) -> None:
    web = topic.subscribe("web", "http", **RETRIES)
    answer(world, ("status 503", SAMPLE))
    topic.publish("one")

    shown = web.show()
    assert (shown["state"], shown["keep_answers"]) == ("retrying", False)
    assert "failed_answers" not in shown
    assert kept(world) == []


def test_the_newest_answer_of_each_status_is_shown(
    world: World, topic: TestTopic, schedules: Schedules
) -> None:
    web = topic.subscribe("web", "http", keep_answers=True, **RETRIES)
    assert web.show()["failed_answers"] == []
    full = AnswerSample(body=b"\x00\xff", cut=False)
    answer(world, ("status 503", SAMPLE), ("status 400", full), ("timeout", None), (None, None))
    began_ms = world.clock.now_ms()
    (message,) = topic.publish("one")
    schedules.pass_seconds(60)

    shown = web.show()
    assert shown["state"] == "delivering"
    newest, oldest = shown["failed_answers"]
    assert newest | {"at": ""} == {
        "error": "status 400",
        "at": "",
        "duration_ms": 40,
        "message_id": message["id"],
        "headers": [],
        "body": "AP8=",
        "body_encoding": "base64",
        "body_cut": False,
    }
    assert oldest["headers"] == [{"name": "Content-Type", "value": "text/plain"}]
    assert (oldest["error"], oldest["body"], oldest["body_cut"]) == ("status 503", "no room", False)
    assert "body_encoding" not in oldest
    history = topic.history(message["id"], "web")
    assert [each["at"] for each in history[:2]] == [oldest["at"], newest["at"]]
    assert began_ms <= world.clock.now_ms()


def test_one_of_a_kind_is_written_in_ten_seconds(
    world: World, topic: TestTopic, schedules: Schedules
) -> None:
    web = topic.subscribe("web", "http", keep_answers=True, **RETRIES)
    samples = [AnswerSample(body=f"{number}".encode()) for number in range(8)]
    answer(world, *(("status 503", sample) for sample in samples))
    topic.publish("one")

    seen = []
    for _ in range(6):
        seen.append(web.show()["failed_answers"][0]["body"])
        schedules.pass_seconds(3)

    # Posts are three seconds apart: the first one, and the first one ten seconds later.
    assert list(dict.fromkeys(seen)) == ["0", "4"]


def test_they_are_gone_a_day_later_and_where_nobody_asks_any_more(
    world: World, topic: TestTopic, schedules: Schedules
) -> None:
    web = topic.subscribe("web", "http", keep_answers=True, **RETRIES)
    answer(world, ("status 503", SAMPLE), (None, None))
    topic.publish("one")
    assert len(web.show()["failed_answers"]) == 1
    assert web.patch(keep_answers=False).json["keep_answers"] is False
    assert "failed_answers" not in web.show()
    web.patch(keep_answers=True)
    assert len(web.show()["failed_answers"]) == 1

    world.clock.pass_seconds(86_401)

    assert web.show()["failed_answers"] == []


def test_a_post_is_settled_though_its_answer_cannot_be_kept(
    world: World, topic: TestTopic, schedules: Schedules
) -> None:
    web = topic.subscribe("web", "http", keep_answers=True, **RETRIES)
    answer(world, ("status 503", SAMPLE), (None, None))
    refused = Throttled(
        world,
        lambda operation, request: (
            operation == "PutItem" and request["Item"]["pk"]["S"].endswith("#answers")
        ),
        times=100,
    )
    (message,) = topic.publish("one")
    schedules.pass_seconds(30)

    assert refused.refused >= 1
    assert web.show()["failed_answers"] == []
    assert topic.trace(message["id"])["web"]["state"] == "delivered"


def test_a_letter_that_the_cut_goes_through_is_left_out(world: World, topic: TestTopic) -> None:
    web = topic.subscribe("web", "http", keep_answers=True, **RETRIES)
    body = ("é" * 600).encode()[:1_023]
    answer(world, ("status 503", AnswerSample(body=body, cut=True)))
    topic.publish("one")

    (shown,) = web.show()["failed_answers"]
    assert (shown["body"], shown["body_cut"]) == ("é" * 511, True)


@pytest.mark.parametrize("protocol", ["pull", "queue"])
def test_what_posts_nothing_keeps_no_answers(world: World, topic: TestTopic, protocol: str) -> None:
    topic.client.put("/queues/q", {})
    given = {"endpoint": "q"} if protocol == "queue" else {}
    reply = topic.try_subscribe("other", protocol=protocol, keep_answers=True, **given)
    assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "keep_answers")
    assert (
        topic.try_subscribe("other", protocol=protocol, keep_answers=False, **given).status == 201
    )
    reply = topic.try_subscribe(
        "web", protocol="http", endpoint="https://a.example/", keep_answers=1
    )
    assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "keep_answers")
