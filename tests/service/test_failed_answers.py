"""What a URL answered to posts that failed, for a subscription that asks for it."""

from __future__ import annotations

from functools import partial

import pytest
from tests.service.faults import Throttled
from tests.service.topics import Schedules, TestTopic

from cirrusmq.model.answer_sample import BODY_BYTES, AnswerSample, sample_of
from cirrusmq.subscriptions.failed_answers import SHOWN, FailedAnswer, keep_answer
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


def test_nothing_is_kept_unless_it_is_asked_for(world: World, topic: TestTopic) -> None:
    web = topic.subscribe("web", "http", **RETRIES)
    answer(world, ("status 503", SAMPLE))
    topic.publish("one")

    shown = web.show()
    assert (shown["state"], shown["keep_answers"]) == ("retrying", False)
    assert "failed_answers" not in shown
    assert not [item for item in world.items() if item["pk"]["S"].endswith("#answers")]


def test_the_newest_answer_of_each_status_is_shown(
    world: World, topic: TestTopic, schedules: Schedules
) -> None:
    web = topic.subscribe("web", "http", keep_answers=True, **RETRIES)
    assert web.show()["failed_answers"] == []
    full = AnswerSample(body=b"\x00\xff", cut=False)
    answer(world, ("status 503", SAMPLE), ("status 400", full), ("timeout", None), (None, None))
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


def test_they_are_gone_a_day_later_and_without_keep_answers(
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


def test_a_letter_cut_in_two_is_left_out(world: World, topic: TestTopic) -> None:
    web = topic.subscribe("web", "http", keep_answers=True, **RETRIES)
    body = ("é" * 600).encode()[:1_023]
    answer(world, ("status 503", AnswerSample(body=body, cut=True)))
    topic.publish("one")

    (shown,) = web.show()["failed_answers"]
    assert (shown["body"], shown["body_cut"]) == ("é" * 511, True)


@pytest.mark.parametrize(
    "headers",
    [
        [b"X-Why: " + b"n" * 1_000],
        [b"X-Quotes: " + b'"' * 500],
        [b"%c:" % letter for letter in b"abcdefghij" * 100],
    ],
    ids=["long", "quoted", "many"],
)
def test_one_costs_three_write_units_and_a_look_at_twenty_six_read_units(
    world: World, topic: TestTopic, headers: list[bytes]
) -> None:
    web = topic.subscribe("web", "http", keep_answers=True)
    sample = sample_of(headers, b"x" * 5_000)
    assert (len(sample.body), sample.cut) == (BODY_BYTES, True)
    assert sum(len(name) + len(value) for name, value in sample.headers) > 100
    web.show()
    plain = world.units(web.show)[1]
    for number in range(25):
        one = FailedAnswer(
            error=f"status {400 + number}",
            at_ms=world.clock.now_ms(),
            took_ms=30_000,
            message_id="Msg-01M7XV36R3RBNQ643TZT3ZMKWA0",
            sample=sample,
        )
        assert world.write_units(partial(keep_answer, world.core, web.id, one)) == 3

    assert len(web.show()["failed_answers"]) == SHOWN
    assert 4 < world.units(web.show)[1] - plain <= 6


@pytest.mark.parametrize("protocol", ["pull", "queue"])
def test_protocols_without_posts_keep_no_answers(topic: TestTopic, protocol: str) -> None:
    topic.client.put("/queues/q", {})
    given = {"endpoint": "q"} if protocol == "queue" else {}
    topic.subscribe("other", protocol, keep_answers=False, **given)
