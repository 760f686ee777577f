"""The units of the calls that the console makes again and again are those that its page tells."""

from __future__ import annotations

import re

from tests.console.browsing import ROOT

from cirrusmq_local.testing import Client, World

PAGE = ROOT / "infra/manual/console.md"


def told() -> dict[str, float]:
    """Call -> read units, from the page's table."""
    _, _, text = PAGE.read_text("utf-8").partition("| call | read units |\n| --- | --- |\n")
    rows = re.findall(r"^\| (.+) \| ([\d.]+)", text.partition("\n\n")[0], re.M)
    return {call: float(units) for call, units in rows}


def test_the_page_tells_the_reads_of_its_calls() -> None:
    world = World()
    client = world.client("shop")
    for number in range(25):
        client.put(f"/queues/queue-{number}")
    for _ in range(40):
        client.post("/queues/queue-0/messages", {"messages": [{"body": "x"}] * 16})
    client.put("/topics/news")
    subscription = {"protocol": "http", "endpoint": "http://127.0.0.1:9/"}
    client.put("/topics/news/subscriptions/printer", subscription)
    client.put("/topics/news/subscriptions/readers", {"protocol": "pull"})
    published = client.post("/topics/news/messages", {"messages": [{"body": "x"}]}).json
    for _ in range(50):
        client.post("/queues/queue-1/purge")
    world.settle()
    queues = ",".join(f"queue-{number}" for number in range(25))
    trace = f"/topics/news/messages/{published['messages'][0]['id']}"
    calls = {
        "25 queues by name": ("/queues", "limit=25"),
        "one queue with its counts": ("/queues/queue-0", ""),
        "10 topics by name": ("/topics", "limit=10"),
        "the subscriptions of a topic": ("/topics/news/subscriptions", ""),
        "one subscription to a URL, with its state": ("/topics/news/subscriptions/printer", ""),
        "one group, with its state": ("/topics/news/subscriptions/readers", ""),
        "one topic with its counts": ("/topics/news", ""),
        "a trace": (trace, "body=true"),
        "the last hour of 25 queues": ("/rates", f"queues={queues}"),
        "50 operations": ("/operations", "limit=50"),
        "50 changes": ("/audit", "limit=50"),
    }
    found = {}
    for name, (path, query) in calls.items():
        world.clock.pass_seconds(15)  # as between two reads of the overview
        before = world.engine.capacity()["read_units"]
        assert client.get(path, query).status == 200
        found[name] = world.engine.capacity()["read_units"] - before
    give_up_one(client)
    world.clock.pass_seconds(15)
    before = world.engine.capacity()["read_units"]
    peeked = client.post("/queues/dead/messages/peek", {"max": 1, "dead_letter": {}}).json
    assert len(peeked["messages"]) == 1
    units = world.engine.capacity()["read_units"] - before
    found["the note of one dead letter, in a queue that holds it alone"] = units
    client.get("/queues/queue-0")
    world.clock.pass_seconds(5)  # as between two reads of a queue's page
    before = world.engine.capacity()["read_units"]
    assert client.get("/rates", "queues=queue-0").status == 200
    units = world.engine.capacity()["read_units"] - before
    found["the last hour of one queue, five seconds after its counts"] = units
    assert found == told()


def give_up_one(client: Client) -> None:
    client.put("/queues/dead")
    client.put("/queues/failing", {"dead_letter": {"queue": "dead", "max_receives": 9}})
    client.post("/queues/failing/messages", {"messages": [{"body": "x"}]})
    body = {"wait_seconds": 5}
    (held,) = client.post("/queues/failing/messages/receive", body).json["messages"]
    client.post("/queues/failing/messages/dead-letter", {"receipts": [held["receipt"]]})
