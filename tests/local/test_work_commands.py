"""Commands that delete or take long, against a service that a test writes; and all in JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from tests.local.scripted_service import QUEUE, SUBSCRIPTION, Run, Service

from cirrusmq_local.commands.cli import make_app


@pytest.fixture
def answered(run: Run) -> Run:
    """A command at a terminal, at which this is typed: `answered(b"y\\n", "unsubscribe", …)`."""

    def start(typed: bytes, *arguments: str) -> Any:
        keyboard, terminal = os.openpty()
        try:
            os.write(keyboard, typed)
            return run(*arguments, terminal=terminal)
        finally:
            os.close(keyboard)
            os.close(terminal)

    return start


@pytest.mark.parametrize(("typed", "deleted"), [(b"n\n", False), (b"y\n", True)])
def test_at_a_terminal_a_queue_is_deleted_only_after_a_yes(
    answered: Run, service: Service, typed: bytes, deleted: bool
) -> None:
    service.answers[f"DELETE {QUEUE}"] = [(204, None)]
    asked = answered(typed, "queue", "delete", "orders")
    assert asked.returncode == (0 if deleted else 1)
    assert service.asked == ([(f"DELETE {QUEUE}", None)] if deleted else [])


WAITING = {"active": 7, "inactive": 2, "delayed": 1}


@pytest.mark.parametrize(
    ("subscription", "lost"),
    [
        (
            {"protocol": "pull", "counts": WAITING},
            "lose the messages that wait for it (7 active, 2",
        ),
        ({"protocol": "queue", "endpoint": "orders"}, "What it delivered to orders stays there"),
        ({"protocol": "pull", "mode": "broadcasting"}, "The topic's log keeps its messages"),
    ],
)
def test_at_a_terminal_the_loss_of_a_subscription_is_told(
    answered: Run, service: Service, subscription: dict[str, Any], lost: str
) -> None:
    shown = {"name": "web", "topic": "news", **subscription}
    service.answers[f"GET {SUBSCRIPTION}"] = [(200, shown)]
    asked = answered(b"n\n", "unsubscribe", "news", "web")
    assert (asked.returncode, lost in " ".join(asked.stdout.split())) == (1, True)
    assert service.asked == [(f"GET {SUBSCRIPTION}", None)]


def test_a_queue_is_empty_when_nothing_of_it_is_left(run: Run, service: Service) -> None:
    none = {"active": 0, "inactive": 0, "delayed": 0}
    left = [none | {"active": 3}, none | {"inactive": 1}, none | {"delayed": 2}, none]
    service.answers[f"GET {QUEUE}"] = [(200, {"name": "orders", "counts": each}) for each in left]
    waited = run("queue", "wait-empty", "orders")
    assert (waited.returncode, waited.stdout) == (0, "orders is empty\n"), waited.stderr
    assert len(service.asked) == 4


def test_a_full_queue_is_waited_for_so_long(run: Run, service: Service) -> None:
    counts = {"active": 0, "inactive": 1, "delayed": 0}
    service.answers[f"GET {QUEUE}"] = [(200, {"name": "orders", "counts": counts})]
    waited = run("queue", "wait-empty", "orders", "--timeout", "0")
    assert waited.returncode == 1
    assert "orders is not empty: 0 active, 1 inactive, 0 delayed" in waited.stderr


def test_operations_are_listed_up_to_so_many(run: Run, service: Service) -> None:
    purge = {"id": "Op-2", "kind": "purge", "state": "failed", "done": 3, "queue": "orders"}
    replay = {"id": "Op-1", "kind": "replay", "state": "running", "done": 0}
    replay |= {"topic": "news", "subscription": "all"}
    service.answers["GET /operations"] = [(200, {"operations": [purge, replay]})]
    told = run("operation", "list", "--max", "1", "--json")
    assert (told.returncode, json.loads(told.stdout)) == (0, [purge]), told.stderr
    shown = run("operation", "list", "--state", "running")
    assert "orders" in shown.stdout
    assert "news/all" in shown.stdout
    assert run("operation", "list", "--state", "gone").returncode == 2


def test_changes_are_listed(run: Run, service: Service) -> None:
    change = {"at": "2026-11-20T08:00:00.123Z", "account": "local", "key_id": "CK1"}
    change |= {"route": "PUT /queues/{queue}", "resource": "orders", "code": "Ok"}
    service.answers["GET /audit"] = [(200, {"changes": [change]}), (200, {"changes": []})]
    told = run("changes", "--key", "CK1", "--json")
    assert (told.returncode, json.loads(told.stdout)) == (0, [change]), told.stderr
    assert run("changes", "--since", "2026-11-20").stdout == "no changes\n"
    assert run("changes", "--until", "soon").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        (("queue", "delete", "orders"), f"DELETE {QUEUE}"),
        (("queue", "delete", "orders", "--yes"), f"DELETE {QUEUE}"),
        (("unsubscribe", "news", "web"), f"DELETE {SUBSCRIPTION}"),
    ],
)
def test_a_script_is_not_asked_and_makes_one_call(
    run: Run, service: Service, arguments: tuple[str, ...], call: str
) -> None:
    service.answers[call] = [(204, None)]
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert service.asked == [(call, None)]


def test_long_work_is_followed_to_its_end(run: Run, service: Service) -> None:
    service.answers[f"POST {QUEUE}/redrive"] = [(202, {"operation": "op/1"})]
    running = {"id": "op/1", "kind": "redrive", "state": "running", "done": 3}
    ended = running | {"state": "succeeded", "done": 7}
    service.answers["GET /operations/{id}"] = [(200, running), (200, running), (200, ended)]
    done = run("queue", "redrive", "dead", "--max-messages", "7")
    assert done.returncode == 0, done.stderr
    assert "7 messages" in done.stdout
    assert service.asked[0] == (f"POST {QUEUE}/redrive", {"max_messages": 7})
    assert len(service.asked) == 4


def test_failed_work_exits_with_1(run: Run, service: Service) -> None:
    service.answers[f"POST {QUEUE}/rewind"] = [(202, {"operation": "1"})]
    failed = {"kind": "rewind", "state": "failed", "done": 0, "detail": "the queue is gone"}
    service.answers["GET /operations/{id}"] = [(200, failed)]
    done = run("queue", "rewind", "a", "--to", "2026-11-20T08:00:00Z")
    assert done.returncode == 1
    assert "the queue is gone" in done.stderr
    assert service.asked[0][1] == {"to": "2026-11-20T08:00:00Z"}


# These print nothing, or what they print is a format already; `up` runs until it is ended.
WITHOUT_JSON = {
    "schedule delete",
    *("queue cancel", "queue delete", "queue remove-receiver", "queue revoke"),
    *("topic confirm", "topic delete", "topic retry", "topic revoke", "unsubscribe", "key delete"),
    *("queue wait-empty", "queue export", "data export", "up", "wait", "down", "admin", "env"),
    "iam-policy",
    *("report adjust", "report publish"),
}


def test_every_command_can_show_its_data_in_json() -> None:
    def commands(group: Any, path: str = "") -> Iterator[tuple[str, set[str]]]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from commands(command, f"{path}{name} ")
            else:
                yield path + name, {each.name for each in command.params}

    found = dict(commands(typer.main.get_command(make_app())))
    assert {name for name, options in found.items() if "as_json" not in options} == WITHOUT_JSON
