"""How far a call leads: the modules of the core that run in it, and the arrows between them.

A newcomer who follows a call reads so many files. The figures may only fall: a change that adds to
one of them takes away elsewhere, or says here why it may not.
"""

from __future__ import annotations

from tests.service.conftest import MakeQueue, TestQueue
from tests.service.flows import Flow, traced
from tests.service.topics import Schedules, TestTopic

from cirrusmq_local.testing import World

MODULES_AND_ARROWS = {
    "send": (31, 39),
    "receive": (37, 60),
    "receive, ordered": (35, 53),
    # Of these `receiving/group_slices.py`: groups with a rate made `fair.py` too long for one file.
    "receive, fair": (38, 60),
    "delete": (21, 25),
    "publish": (30, 42),
    "fan out and push": (56, 113),
    "retry": (41, 80),
}
"""By flow, in an environment that has made such calls before.

Receives have a memory for each mechanism: heads and turns. Chores they only name. They note which
key receives, to `access.key_cache`: in the one place where the API's and all dialects' pass.
A poster asks whether its account has to give way to another one. What makes a parcel is in
`sending`, also for fan-out. Who sent a message is noted and read in one place, `model.sender`.
"""


def test_no_call_leads_further_than_it_did(
    world: World, make_queue: MakeQueue, topic: TestTopic, schedules: Schedules
) -> None:
    flows = {
        **_of_queues(make_queue),
        **_of_topics(world, topic, schedules),
    }

    assert {
        name: (len(flow.modules), len(flow.arrows)) for name, flow in flows.items()
    } == MODULES_AND_ARROWS


def _of_queues(make_queue: MakeQueue) -> dict[str, Flow]:
    plain, ordered = make_queue(), make_queue("ordered", ordered=True)
    fair = make_queue("fair", fair=True)
    for queue in (plain, ordered, fair):
        queue.send("before", group="g")
        queue.delete(*queue.receive())
    flows = {"send": traced(lambda: plain.send("a"))}
    held = _receive(plain, flows, "receive")
    for queue, name in ((ordered, "receive, ordered"), (fair, "receive, fair")):
        queue.send("a", group="g")
        assert _receive(queue, flows, name)
    flows["delete"] = traced(lambda: plain.delete(*held))
    return flows


def _receive(queue: TestQueue, flows: dict[str, Flow], name: str) -> list[dict[str, object]]:
    held: list[dict[str, object]] = []
    flows[name] = traced(lambda: held.extend(queue.receive()))
    return held


def _of_topics(world: World, topic: TestTopic, schedules: Schedules) -> dict[str, Flow]:
    topic.subscribe("hook", protocol="http", retry={"policy": "custom", "waits": [5]})
    topic.publish("before")
    flows = {"publish": traced(lambda: topic.try_publish([{"body": "a"}]))}
    flows["fan out and push"] = traced(world.settle)
    world.endpoint = lambda url: "status 500"
    topic.publish("b")
    world.endpoint = lambda url: None
    posted = len(world.posts)
    flows["retry"] = traced(schedules.run_out)
    assert len(world.posts) == posted + 1
    return flows
