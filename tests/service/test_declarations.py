"""An account as a file says: the plan, its order, what it refuses, and applying it again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.service.library import LibraryClient

from cirrusmq_client.errors import CirrusMQError, QueueNotFound
from cirrusmq_local.declarations import account, document, yaml_text
from cirrusmq_local.declarations.applying import Stopped, apply_step
from cirrusmq_local.declarations.document import BadFile
from cirrusmq_local.declarations.plan import Plan, make_plan
from cirrusmq_local.declarations.resources import Place
from cirrusmq_local.declarations.showing import plan_lines
from cirrusmq_local.testing import World

SHOP = """
version: 1
queues:
  orders:
    delay_seconds: 3
    dead_letter: {queue: orders-dead, max_receives: 5}
    receivers:
      audit: {start: earliest, filter: {tags: [paid]}}
    grants: {partner: send, boss: {permission: full}}
  orders-dead:
topics:
  sales:
    subscriptions:
      billing: {protocol: queue, endpoint: orders}
      group: {protocol: pull, retry: {policy: unordered}, dead_letter_queue: orders-dead}
      web: {protocol: http, endpoint: "https://example.com/in", ordered: true}
"""


class Shop:
    """An account, and files applied to it."""

    def __init__(self, world: World, account: str = "acme") -> None:
        self.world = world
        self.client = LibraryClient(world, account)

    def plan(self, text: str, **options: bool) -> Plan:
        return make_plan(
            document.parse(text),
            account.read_account(self.client),
            waiting=lambda place: account.count_waiting(self.client, place),
            **options,
        )

    def apply(self, text: str, **options: bool) -> list[str]:
        """The steps that were done."""
        plan = self.plan(text, **options)
        assert not plan.conflicts, plan.conflicts
        for step in plan.steps:
            apply_step(self.client, step, force=options.get("force", False))
        return [f"{step.action} {step.place}" for step in plan.steps]

    def export(self) -> str:
        return document.write(account.exported(account.read_account(self.client)))

    def conflicts(self, text: str, **options: bool) -> dict[str, str]:
        plan = self.plan(text, **options)
        return {str(conflict.place): conflict.reason for conflict in plan.conflicts}


@pytest.fixture
def shop() -> Shop:
    return Shop(World())


def queues(**attributes: dict[str, Any]) -> str:
    return yaml_text.dump({"version": 1, "queues": attributes})


def dead_letters_to(queue: str) -> dict[str, Any]:
    return {"dead_letter": {"queue": queue, "max_receives": 2}}


def test_missing_parts_are_made_in_a_valid_order(shop: Shop) -> None:
    assert shop.apply(SHOP) == [
        "create queue orders-dead",
        "create queue orders",
        "create receiver orders/audit",
        "create grant orders/boss",
        "create grant orders/partner",
        "create topic sales",
        "create subscription sales/billing",
        "create subscription sales/group",
        "create subscription sales/web",
    ]
    assert shop.client.show_queue("orders")["delay_seconds"] == 3
    assert shop.client.show_receiver("orders", "audit")["filter"] == {"tags": ["paid"]}
    assert shop.client.show_grant("orders", "boss")["permission"] == "full"
    assert shop.client.show_subscription("sales", "web")["ordered"] is True


def test_a_plan_writes_nothing(shop: Shop) -> None:
    shop.plan(SHOP)
    assert shop.client.writes == []


def test_an_export_leaves_out_defaults_and_keeps_one_order(shop: Shop) -> None:
    shop.apply(SHOP)
    assert shop.export() == (
        "version: 1\n"
        "queues:\n"
        "  orders:\n"
        "    delay_seconds: 3\n"
        "    dead_letter:\n"
        "      queue: orders-dead\n"
        "      max_receives: 5\n"
        "    receivers:\n"
        "      audit:\n"
        "        start: earliest\n"
        "        filter:\n"
        "          tags:\n"
        "            - paid\n"
        "    grants:\n"
        "      boss: full\n"
        "      partner: send\n"
        "  orders-dead: {}\n"
        "topics:\n"
        "  sales:\n"
        "    subscriptions:\n"
        "      billing:\n"
        "        protocol: queue\n"
        "        endpoint: orders\n"
        "      group:\n"
        "        protocol: pull\n"
        "        retry:\n"
        "          policy: unordered\n"
        "        dead_letter_queue: orders-dead\n"
        "      web:\n"
        "        protocol: http\n"
        "        endpoint: https://example.com/in\n"
        "        ordered: true\n"
    )


def test_an_attribute_removed_from_the_file_returns_to_its_default(shop: Shop) -> None:
    shop.apply(SHOP)
    changed = SHOP.replace("    delay_seconds: 3\n", "").replace("partner: send", "partner: info")
    assert list(plan_lines(shop.plan(changed))) == [
        "~ queue orders",
        "    delay_seconds: 3 -> 0",
        "~ grant orders/partner",
        '    permission: "send" -> "info"',
        "0 to create, 2 to change, 0 to delete, 7 as the file says",
    ]
    shop.apply(changed)
    assert shop.client.show_queue("orders")["delay_seconds"] == 0
    assert shop.client.show_grant("orders", "partner")["permission"] == "info"
    assert shop.apply(changed) == []


def test_grants_on_topics_are_made_changed_and_taken_back(shop: Shop) -> None:
    granted = "version: 1\ntopics: {sales: {grants: {bob: publish, carol: subscribe}}}\n"
    assert shop.apply(granted) == [
        "create topic sales",
        "create topic grant sales/bob",
        "create topic grant sales/carol",
    ]
    assert "    grants:\n      bob: publish\n      carol: subscribe\n" in shop.export()
    assert shop.apply(shop.export(), delete=True) == []
    shop.apply(granted.replace("bob: publish", "bob: info"))
    assert shop.client.show_topic_grant("sales", "bob")["permission"] == "info"
    assert shop.apply("version: 1\ntopics: {sales: {}}\n", delete=True) == [
        "delete topic grant sales/bob",
        "delete topic grant sales/carol",
    ]
    with pytest.raises(document.BadFile, match="topic grant sales/bob: permission: must be one"):
        shop.plan("version: 1\ntopics: {sales: {grants: {bob: send}}}\n")


def test_a_retry_policy_written_out_is_its_default(shop: Shop) -> None:
    shop.apply(SHOP)
    assert shop.apply(SHOP.replace(", retry: {policy: unordered}", "")) == []


def test_parts_outside_the_file_stay_unless_deletion_is_asked_for(shop: Shop) -> None:
    shop.apply(SHOP)
    plan = shop.plan(queues(orders={}))
    assert [str(place) for place in plan.left] == [
        "grant orders/boss",
        "grant orders/partner",
        "queue orders-dead",
        "receiver orders/audit",
        "topic sales",
    ]
    assert {step.action for step in plan.steps} == {"change"}
    assert shop.apply(queues(orders={}), delete=True) == [
        "change queue orders",
        "delete topic sales",
        "delete receiver orders/audit",
        "delete grant orders/boss",
        "delete grant orders/partner",
        "delete queue orders-dead",
    ]
    assert shop.export() == "version: 1\nqueues:\n  orders: {}\ntopics: {}\n"


def test_a_part_with_messages_is_deleted_by_force_alone(shop: Shop) -> None:
    shop.apply(SHOP)
    shop.world.client("acme").send("orders-dead", "one", "two")
    emptied = queues(orders={})
    assert shop.conflicts(emptied, delete=True) == {
        "queue orders-dead": "holds 2 messages, and is not in the file"
    }
    plan = shop.plan(emptied, delete=True, force=True)
    used_up = next(step for step in plan.steps if step.place == Place("queue", "orders-dead"))
    with pytest.raises(Stopped, match="holds 2 messages by now"):
        apply_step(shop.client, used_up, force=False)
    assert "delete queue orders-dead" in shop.apply(emptied, delete=True, force=True)
    with pytest.raises(QueueNotFound):
        shop.client.show_queue("orders-dead")


def test_messages_of_a_receiver_and_of_a_group_count_as_held(shop: Shop) -> None:
    shop.apply(SHOP)
    shop.world.client("acme").post(
        "/topics/sales/messages", {"messages": [{"body": "a", "tags": ["paid"]}]}
    )
    shop.world.settle()
    held = shop.conflicts("version: 1\n", delete=True)
    assert held["topic sales"].startswith("holds 1 message")
    kept = SHOP.replace("  audit: {start: earliest, filter: {tags: [paid]}}\n", "  {}\n")
    shop.world.client("acme").send("orders", "b", tags=["paid"])
    shop.world.settle()
    assert "receiver orders/audit" in shop.conflicts(kept, delete=True)


@pytest.mark.parametrize(
    ("before", "after", "place", "reason"),
    [
        ({"ordered": True}, {}, "queue orders", "ordered: is fixed when the queue is created"),
        ({"partitions": 8}, {"partitions": 4}, "queue orders", "partitions can only grow"),
        (
            {"receivers": {"audit": {}}},
            {"receivers": {"audit": {"start": "earliest"}}},
            "receiver orders/audit",
            "start: is fixed when the receiver is created",
        ),
    ],
)
def test_a_fixed_attribute_is_a_conflict_and_never_replaced(
    shop: Shop, before: dict[str, Any], after: dict[str, Any], place: str, reason: str
) -> None:
    shop.apply(queues(orders=before))
    assert shop.conflicts(queues(orders=after)) == {place: reason}


@pytest.mark.parametrize(
    ("old", "new", "place", "parameter"),
    [
        ("  sales:\n", "  sales:\n    partitions: 9\n", "topic sales", "partitions"),
        ("endpoint: orders}", "endpoint: orders-dead}", "subscription sales/billing", "endpoint"),
        (
            "protocol: pull,",
            "protocol: pull, ordered: true,",
            "subscription sales/group",
            "ordered",
        ),
        (
            "{protocol: queue, endpoint: orders}",
            "{protocol: pull}",
            "subscription sales/billing",
            "protocol",
        ),
        (", ordered: true", "", "subscription sales/web", "ordered"),
    ],
)
def test_fixed_attributes_of_topics_are_conflicts(
    shop: Shop, old: str, new: str, place: str, parameter: str
) -> None:
    shop.apply(SHOP)
    assert old in SHOP
    conflicts = shop.conflicts(SHOP.replace(old, new))
    assert conflicts[place].startswith(f"{parameter}: ")
    assert "fixed when" in conflicts[place]


def test_a_name_in_other_letters_is_a_conflict(shop: Shop) -> None:
    shop.apply(queues(orders={}))
    [(place, reason)] = shop.conflicts(queues(Orders={})).items()
    assert (place, reason) == (
        "queue Orders",
        "the name is taken by queue orders: the service ignores case",
    )


def test_dead_letter_queues_trade_places(shop: Shop) -> None:
    one = dead_letters_to("b")
    other = dead_letters_to("a")
    shop.apply(queues(a=one, b={}))
    assert shop.apply(queues(a={}, b=other)) == ["change queue a", "change queue b"]
    shop.apply(queues(a=one, b={}, c={}, d=one))
    moved = dead_letters_to("c")
    assert shop.apply(queues(a=moved, b=moved, c={}, d=moved)) == [
        "change queue a",
        "change queue d",
        "change queue b",
    ]
    assert shop.apply(queues(b={}, c={}), delete=True)[0] == "change queue b"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (
            queues(a=dead_letters_to("nowhere")),
            5,
            "dead_letter.queue: there is no queue nowhere, neither in the file nor in the account",
        ),
        (
            queues(a=dead_letters_to("b"), b=dead_letters_to("a")),
            5,
            "dead_letter.queue: must be a queue without dead_letter, and b has one",
        ),
        (queues(a=dead_letters_to("a")), 5, "dead_letter.queue: must be another queue"),
        (
            queues(a=dead_letters_to("b"), b={"ordered": True}),
            5,
            "dead_letter.queue: must not be ordered, and b is",
        ),
        (
            SHOP.replace("endpoint: orders}", "endpoint: elsewhere}"),
            14,
            "endpoint: there is no queue elsewhere, neither in the file nor in the account",
        ),
    ],
)
def test_wrongly_named_queues_are_told_with_their_line(
    shop: Shop, text: str, line: int, problem: str
) -> None:
    with pytest.raises(BadFile) as refused:
        shop.plan(text)
    at, told = refused.value.problems[0]
    assert (at, told.partition(": ")[2]) == (line, problem)
    assert shop.client.writes == []


def test_a_queue_used_for_dead_letters_can_have_none_itself(shop: Shop) -> None:
    shop.apply(queues(a=dead_letters_to("b"), b={}))
    with pytest.raises(BadFile, match="must be null: queue a uses this queue"):
        shop.plan(queues(b=dead_letters_to("c"), c={}))


def test_a_queue_of_the_account_may_be_named_unless_it_is_deleted(shop: Shop) -> None:
    shop.apply(queues(dead={}))
    text = queues(a=dead_letters_to("dead"))
    with pytest.raises(BadFile, match="no queue dead"):
        shop.plan(text, delete=True)
    assert shop.apply(text) == ["create queue a"]


def test_a_dead_letter_queue_made_by_the_service_is_not_part_of_a_file(shop: Shop) -> None:
    shop.apply(SHOP.replace(", dead_letter_queue: orders-dead", ""))
    before = shop.export()
    group = shop.client.show_subscription("sales", "group")
    caller, path = shop.world.client("acme"), "/topics/sales/subscriptions/group/messages"
    caller.post("/topics/sales/messages", {"messages": [{"body": "a"}]})
    shop.world.settle()
    received = caller.post(f"{path}/receive", {"wait_seconds": 0}).json["messages"]
    receipts = [message["receipt"] for message in received]
    assert caller.post(f"{path}/dead-letter", {"receipts": receipts}).status == 200
    shop.world.settle()
    made = f"dlq-{group['id']}"
    assert shop.client.show_queue(made)["counts"]["active"] == 1
    assert shop.export() == before
    assert shop.apply(before, delete=True) == []
    assert "queue " + made in shop.conflicts("version: 1\n", delete=True)


def test_a_failing_step_says_so_and_the_next_apply_finishes(shop: Shop) -> None:
    plan = shop.plan(SHOP)
    for step in plan.steps[:3]:
        apply_step(shop.client, step, force=False)
    shop.client.create_topic("sales", {"partitions": 3})
    topic = next(step for step in plan.steps if step.place.kind == "topic")
    with pytest.raises(Stopped, match="topic sales exists with other attributes") as stopped:
        apply_step(shop.client, topic, force=False)
    assert isinstance(stopped.value.__cause__, CirrusMQError)
    shop.client.delete_topic("sales")
    assert len(shop.apply(SHOP)) == len(plan.steps) - 3
    assert shop.apply(SHOP) == []


def test_a_queue_deleted_by_another_meanwhile_is_done(shop: Shop) -> None:
    shop.apply(queues(a={}, b={}))
    plan = shop.plan(queues(a={}), delete=True)
    shop.client.delete_queue("b")
    for step in plan.steps:
        apply_step(shop.client, step, force=False)
    assert shop.apply(queues(a={}), delete=True) == []


def test_the_secret_of_a_new_url_is_answered_once(shop: Shop) -> None:
    plan = shop.plan(SHOP)
    secrets = [apply_step(shop.client, step, force=False) for step in plan.steps]
    assert [secret.startswith("whsec_") for secret in secrets if secret] == [True]
    web = plan.steps[-1]
    assert web.place == Place("subscription", "web", "sales")
    assert apply_step(shop.client, web, force=False) is None
    assert not account.is_pending(shop.client, web.place)


def test_an_unconfirmed_url_is_pending(shop: Shop) -> None:
    strict = msgspec.structs.replace(shop.world.core.settings, confirm_endpoints=True)
    shop.world.core = msgspec.structs.replace(shop.world.core, settings=strict)
    shop.apply(SHOP)
    assert account.is_pending(shop.client, Place("subscription", "web", "sales"))
    assert not account.is_pending(shop.client, Place("subscription", "group", "sales"))
    assert shop.apply(SHOP) == []


SCHEDULED = """
version: 1
queues:
  orders: {}
topics:
  sales: {}
schedules:
  daily: {queue: orders, cron: "0 8 * * 1-5", time_zone: Europe/Berlin, message: {body: count}}
  often: {topic: sales, every_seconds: 60, message: {body: tick, tags: [a]}, missed: none}
"""


def test_schedules_are_made_changed_exported_and_deleted(world: World) -> None:
    shop = Shop(world)
    shop.apply(SCHEDULED)
    daily = shop.client.show_schedule("daily")
    assert (daily["queue"], daily["time_zone"]) == ("orders", "Europe/Berlin")
    assert not shop.plan(SCHEDULED).steps

    exported = document.write(account.exported(account.read_account(shop.client)))
    assert not shop.plan(exported).steps
    assert "missed: none" in exported
    assert "missed: one" not in exported

    changed = SCHEDULED.replace("0 8", "30 9").replace("topic: sales", "queue: orders")
    assert {str(step.place) for step in shop.plan(changed).steps} == {
        "schedule daily",
        "schedule often",
    }
    shop.apply(changed)
    assert shop.client.show_schedule("daily")["cron"] == "30 9 * * 1-5"
    assert shop.client.show_schedule("often")["queue"] == "orders"

    one = changed[: changed.index("  often")]
    shop.apply(one, delete=True)
    assert [each["name"] for each in shop.client.list_schedules()] == ["daily"]


def test_a_file_older_than_schedules_deletes_none(world: World) -> None:
    shop = Shop(world)
    shop.apply(SCHEDULED)
    older = SCHEDULED[: SCHEDULED.index("schedules:")]
    assert not shop.plan(older, delete=True).steps
    shop.apply(older, delete=True)
    assert len(list(shop.client.list_schedules())) == 2


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ("queue: gone, every_seconds: 60", "there is no queue gone"),
        ("topic: gone, every_seconds: 60", "there is no topic gone"),
        ("queue: line, every_seconds: 60", "must not be ordered"),
        ("queue: line, every_seconds: 61", "must be a multiple of 60"),
        ("queue: line, cron: never", "must have five fields"),
        ("queue: line, cron: '* * * * *', time_zone: Mars", "must be a time zone"),
    ],
)
def test_faults_of_schedules_are_told_with_their_lines(
    world: World, fields: str, fault: str
) -> None:
    queue = "version: 1\nqueues:\n  line: {ordered: true}\n"
    text = f"{queue}schedules:\n  s: {{{fields}, message: {{body: x}}}}\n"
    with pytest.raises(BadFile, match="line 5: .*" + fault):
        Shop(world).plan(text)
