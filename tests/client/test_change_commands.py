"""The commands that change attributes, subscriptions and grants, against the running service."""

from __future__ import annotations

import json

import pytest
from tests.client.conftest import NewQueue, Refuse, Run, RunJson, connection_by, variables_of
from tests.client.taking import unused

from cirrusmq_client import Client, Message, Queue, Subscription
from cirrusmq_client.errors import GrantNotFound, QueueNotFound, SubscriptionNotFound


def test_a_queue_is_changed_and_a_refusal_is_the_services_own(
    run_command: Run, run_json: RunJson, refuse: Refuse, client: Client, new_queue: NewQueue
) -> None:
    name, dead = new_queue(), new_queue()
    policy = json.dumps({"queue": dead, "max_receives": 3})
    changed = run_json(
        *("queue", "change", name, "-a", "visibility_timeout_seconds=60"),
        *("-a", f"dead_letter={policy}"),
    )
    assert changed["visibility_timeout_seconds"] == 60
    assert client.show_queue(name)["dead_letter"] is not None
    assert run_command("queue", "change", name, "-a", "dead_letter=null").returncode == 0
    assert client.show_queue(name)["dead_letter"] is None
    refused = refuse("queue", "change", name, "-a", "visibility_timeout_seconds=0")
    assert "visibility_timeout_seconds" in refused
    assert refused.count("\n") == 1
    assert client.show_queue(name)["visibility_timeout_seconds"] == 60


@pytest.mark.usefixtures("group")
def test_a_topic_and_its_subscriptions_are_changed(
    run_command: Run, run_json: RunJson, refuse: Refuse, client: Client, topic: str
) -> None:
    assert run_command("topic", "change", topic, "-a", "description=news").returncode == 0
    assert client.show_topic(topic)["description"] == "news"
    change = ("topic", "change-subscription", topic, "group")
    assert run_json(*change, "-a", 'filter={"tags": ["paid"]}')["filter"] == {"tags": ["paid"]}
    shown = run_json("topic", "show-subscription", topic, "group")
    assert (shown["filter"], shown["counts"]["active"]) == ({"tags": ["paid"]}, 0)
    assert "ordered" in refuse(*change, "-a", "ordered=true")


@pytest.mark.usefixtures("group")
def test_a_subscription_is_deleted(
    run_command: Run, refuse: Refuse, client: Client, topic: str
) -> None:
    assert run_command("unsubscribe", topic, "group", "--yes").returncode == 0
    with pytest.raises(SubscriptionNotFound):
        client.show_subscription(topic, "group")
    assert "lists its subscriptions" in refuse("unsubscribe", topic, "group")


def test_an_endpoint_is_confirmed_with_its_token_alone(
    refuse: Refuse, client: Client, topic: str
) -> None:
    client.create_subscription(topic, "web", {"protocol": "http", "endpoint": "http://127.0.0.1:9"})
    told = refuse("topic", "confirm", topic, "web", "--token", "wrong")
    assert ("may not do this" in told, told.count("\n")) == (True, 1)


def test_a_queue_is_granted_to_another_account_and_taken_back(
    run_command: Run, run_json: RunJson, refuse: Refuse, client: Client, new_queue: NewQueue
) -> None:
    name, other = new_queue(), unused("a")
    key = client.create_key(other)
    theirs = variables_of(connection_by(client.url, key))
    assert run_command("shared", **theirs).stdout == "nothing is shared\n"
    assert run_command("queue", "grants", name).stdout == "no grants\n"
    assert "permission" in refuse("queue", "grant", name, other, "everything")
    assert run_command("queue", "grant", name, other, "send").returncode == 0
    assert run_json("queue", "grants", name) == [{"account": other, "permission": "send"}]
    (found,) = run_json("shared", **theirs)
    assert run_command("send", found["queue"], "hello", **theirs).returncode == 0
    assert [each.text for each in client.receive(name, wait_seconds=5)] == ["hello"]
    assert run_command("queue", "revoke", name, other, "--yes").returncode == 0
    with pytest.raises(GrantNotFound):
        client.show_grant(name, other)
    assert "queue grants" in refuse("queue", "revoke", name, other)


def test_a_topic_is_granted_to_another_account_and_taken_back(
    run_command: Run, run_json: RunJson, client: Client, topic: str
) -> None:
    other = unused("a")
    client.create_key(other)
    given = run_json("topic", "grant", topic, other, "publish")
    assert given == {"account": other, "permission": "publish"}
    assert other in run_command("topic", "grants", topic).stdout
    assert run_command("topic", "revoke", topic, other).returncode == 0
    assert client.list_topic_grants(topic) == []


def test_a_receiver_is_shown_with_its_counts(run_json: RunJson, client: Client, queue: str) -> None:
    client.create_receiver(queue, "copy", {})
    client.send(queue, [Message("hello")])
    assert len(client.receive(Queue(queue, "copy"), wait_seconds=5)) == 1
    shown = run_json("queue", "receiver", queue, "copy")
    assert (shown["name"], shown["counts"]["inactive"]) == ("copy", 1)


def test_a_group_is_received_from_and_peeked_at(
    run_command: Run, run_json: RunJson, refuse: Refuse, client: Client, group: Subscription
) -> None:
    client.publish(group.topic, [Message("hello")])
    named = f"{group.topic}/group"
    received = run_json("receive", named, "--wait-seconds", "20")
    assert received["body"] == "hello"
    assert run_command("peek", named).stdout == ""  # it is held
    client.give_back(group, [received["receipt"]], 0)
    assert run_command("peek", named).stdout.endswith("  hello\n")
    assert run_command("receive", named, "--delete", "--wait-seconds", "5").returncode == 0
    assert client.receive(group, wait_seconds=0) == []
    assert "is for queues" in refuse("receive", named, "--receiver", "copy", code=2)


def test_active_messages_are_peeked_at_and_dead_letters_chosen(
    run_command: Run, client: Client, new_queue: NewQueue
) -> None:
    dead = new_queue()
    name = new_queue(dead_letter={"queue": dead, "max_receives": 5})
    client.send(name, [Message(str(number)) for number in range(12)])
    assert len(run_command("peek", name).stdout.splitlines()) == 10
    whole = run_command("peek", name, "--max", "20", "--json").stdout.splitlines()
    assert sorted(int(json.loads(line)["body"]) for line in whole) == list(range(12))
    held = client.receive(name, max_messages=3, wait_seconds=5)
    client.dead_letter(name, [held[0].receipt], reason="odd")
    client.dead_letter(name, [held[1].receipt], reason="worse")
    line = run_command("peek", dead, "--reason", "odd", "--source", name).stdout
    assert line.startswith(f"{held[0].id}  ")
    assert line.endswith(f"  odd in {name}  {held[0].text}\n")
    assert run_command("peek", dead, "--receiver", "copy").stdout == ""
    assert len(run_command("peek", dead, "--younger-than", "3600").stdout.splitlines()) == 2


def test_queues_are_listed_with_their_backlogs(
    run_command: Run, run_json: RunJson, client: Client, new_queue: NewQueue
) -> None:
    full, empty = new_queue(), new_queue()
    client.send(full, [Message("a"), Message("b")])
    listed = run_json("queue", "list", "--counts")
    counts = {each["name"]: each["counts"]["active"] for each in listed if "counts" in each}
    assert (counts[full], counts[empty]) == (2, 0)
    table = run_command("queue", "list", "--counts", "--prefix", full).stdout
    assert "oldest_active_age_seconds" in table
    assert "counts" not in run_json("queue", "list")[0]


def test_long_work_may_be_left_alone_and_asked_for_later(
    run_command: Run, run_json: RunJson, refuse: Refuse, client: Client, new_queue: NewQueue
) -> None:
    name = new_queue(rewind_seconds=3600)
    client.send(name, [Message("a"), Message("b")])
    started = run_command("queue", "purge", name, "--no-wait").stdout.strip()
    assert started.startswith("Op-")
    done = run_command("operation", "show", started, "--wait")
    assert done.stdout == "purge done, 2 messages\n"
    shown = run_json("operation", "show", started)
    assert (shown["id"], shown["state"]) == (started, "succeeded")
    (sent,) = client.send(name, [Message("c")])
    again = run_json("queue", "rewind", name, "--to", sent.sent_at, "--no-wait")["operation"]
    assert run_command("operation", "show", again, "--wait").stdout.startswith("rewind done")
    assert "no such operation" in refuse("operation", "show", "Op-none")


def test_a_queue_deleted_meanwhile_has_no_counts(client: Client) -> None:
    from cirrusmq_local.commands.backlogs import with_counts

    with pytest.raises(QueueNotFound):
        client.show_queue("gone")
    assert with_counts(client, [{"name": "gone"}]) == [{"name": "gone"}]
