"""A request is a message that asks for a reply: it has one, or its sender is told of none."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, to_ms, usage
from tests.service.crashes import BrokenStore, before_each_call, before_transactions
from tests.service.test_receiving import after, attempt

from cirrusmq_local.testing import Client, Reply, World

SECONDS = 60


def ask(queue: TestQueue, body: str = "2+2", seconds: int = SECONDS, **more: Any) -> dict[str, Any]:
    (sent,) = queue.send(body, reply={"seconds": seconds}, **more)
    return sent


def asked(queue: TestQueue, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Send a request and receive it; the entry of the send, and the message."""
    sent = ask(queue, **more)
    (received,) = queue.receive()
    return sent, received


def answer(
    queue: TestQueue, message: dict[str, Any], body: str = "4", client: Client | None = None
) -> Reply:
    path = f"/queues/alice:{queue.name}/messages/{message['id']}/reply"
    request = {"receipt": message["receipt"], "reply": {"body": body}}
    return (client or queue.client).post(path, request)


def look(
    queue: TestQueue,
    sent: dict[str, Any],
    wait_seconds: float = 0,
    client: Client | None = None,
) -> Reply:
    path = f"/queues/alice:{queue.name}/messages/{sent['id']}/reply"
    query = f"reply_by={sent['reply_by']}&wait_seconds={wait_seconds}"
    return (client or queue.client).get(path, query)


def state(queue: TestQueue, sent: dict[str, Any], wait_seconds: float = 0) -> str:
    reply = look(queue, sent, wait_seconds)
    assert reply.status == 200, reply.text
    return str(reply.json["state"])


ATTRIBUTES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"fair": True}, {"group": "g"}),
    ({"priorities": 3}, {"priority": 2}),
    ({"ordered": True}, {"group": "g"}),
    (
        {
            "retry": {"policy": "custom", "waits": [1]},
            "dead_letter": {"queue": "failed", "max_receives": 9},
        },
        {},
    ),
    ({"rewind_seconds": 3_600}, {}),
]


@pytest.mark.parametrize(("attributes", "fields"), ATTRIBUTES)
@pytest.mark.parametrize("size", [1, 3_000, 300_000])
def test_a_reply_ends_its_message_and_reaches_its_sender(
    world: World,
    make_queue: MakeQueue,
    attributes: dict[str, Any],
    fields: dict[str, Any],
    size: int,
) -> None:
    make_queue("failed")
    queue = make_queue("orders", max_message_bytes=1_000_000, **attributes)
    begun_ms = world.clock.now_ms()
    sent = ask(queue, "x" * size, **fields)
    assert to_ms(sent["reply_by"]) == begun_ms + SECONDS * 1000
    assert state(queue, sent) == "waiting"
    (received,) = queue.receive()
    assert received["reply_by"] == received["expires_at"] == sent["reply_by"]

    world.clock.pass_seconds(1)
    replied = answer(queue, received)

    assert replied.status == 200, replied.text
    assert to_ms(replied.json["replied_at"]) == begun_ms + 1_000
    shown = look(queue, sent).json
    assert shown == {
        "state": "replied",
        "reply": {"body": "4", "attributes": {}, "replied_at": replied.json["replied_at"]},
    }
    assert queue.act("delete", received)["deleted"] == []
    world.clock.pass_seconds(45)
    assert queue.receive() == []


def test_a_reply_may_be_bytes_with_attributes(queue: TestQueue) -> None:
    sent, received = asked(queue)
    text = base64.b64encode(b"\xff\0").decode()
    given = {"body_base64": text, "attributes": {"unit": "kg", "raw": {"base64": text}}}
    path = f"{queue.path}/messages/{sent['id']}/reply"
    assert queue.client.post(path, {"receipt": received["receipt"], "reply": given}).status == 200
    shown = look(queue, sent).json["reply"]
    del shown["replied_at"]
    assert shown == given


class TestExactlyOneReply:
    def test_the_same_again_is_told_the_same(self, world: World, queue: TestQueue) -> None:
        sent, received = asked(queue)
        first = answer(queue, received)
        world.clock.pass_seconds(SECONDS + 5)
        assert answer(queue, received).json == first.json
        other = answer(queue, received, "5")
        assert (other.status, other.code) == (409, "Conflict")
        assert look(queue, sent).json["reply"]["body"] == "4"

    def test_an_older_receipt_gives_none(self, world: World, queue: TestQueue) -> None:
        sent, first = asked(queue)
        world.clock.pass_seconds(31)
        (second,) = queue.receive()
        late = answer(queue, first)
        assert (late.status, late.code) == (409, "ReceiptExpired")
        assert answer(queue, second, "5").status == 200
        assert answer(queue, first).code == "Conflict"
        assert look(queue, sent).json["reply"]["body"] == "5"

    @pytest.mark.parametrize("attributes", [{}, {"rewind_seconds": 600}])
    def test_of_two_at_once_the_slower_is_refused(
        self,
        world: World,
        make_queue: MakeQueue,
        monkeypatch: pytest.MonkeyPatch,
        attributes: dict[str, Any],
    ) -> None:
        queue = make_queue("orders", **attributes)
        sent, received = asked(queue)
        before_transactions(world, monkeypatch, lambda: answer(queue, received, "5"))
        slower = answer(queue, received, "4")
        assert (slower.status, slower.code) == (409, "Conflict")
        assert look(queue, sent).json["reply"]["body"] == "5"

    def test_a_lease_lost_meanwhile_gives_none(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent, first = asked(queue)
        world.clock.pass_seconds(31)
        before_transactions(world, monkeypatch, queue.receive)
        assert answer(queue, first).code == "ReceiptExpired"
        assert state(queue, sent) == "waiting"

    @pytest.mark.parametrize("attributes", [{}, {"rewind_seconds": 600}])
    @pytest.mark.parametrize("meanwhile", ["held longer", "given back", "deleted"])
    def test_an_act_of_its_holder_meanwhile_leaves_one_of_both(
        self,
        world: World,
        make_queue: MakeQueue,
        monkeypatch: pytest.MonkeyPatch,
        attributes: dict[str, Any],
        meanwhile: str,
    ) -> None:
        queue = make_queue("orders", **attributes)
        sent, received = asked(queue)

        def act() -> None:
            if meanwhile == "held longer":
                queue.hold(received, 45)
            else:
                queue.act("give-back" if meanwhile == "given back" else "delete", received)

        before_transactions(world, monkeypatch, act)
        reply = answer(queue, received)
        if meanwhile == "held longer":
            assert reply.status == 200
            assert state(queue, sent) == "replied"
        else:
            assert reply.code == "ReceiptExpired"
            assert state(queue, sent) == "waiting"
        assert len(queue.receive()) == (meanwhile == "given back")

    def test_a_message_received_twice_has_one(self, world: World, queue: TestQueue) -> None:
        message = {"body": "x", "reply": {"seconds": SECONDS}}
        request = {"messages": [message], "attempt": attempt(world)}
        (sent,) = queue.client.post(f"{queue.path}/messages", request).json["messages"]
        assert queue.client.post(f"{queue.path}/messages", request).json["messages"] == [sent]
        (first,) = queue.receive()
        assert answer(queue, first).status == 200
        # A message that was received and deleted leaves nothing, so its send stores it again.
        (again,) = queue.client.post(f"{queue.path}/messages", request).json["messages"]
        assert again["id"] == sent["id"]
        (second,) = queue.receive()
        refused = answer(queue, second, "5")
        assert (refused.code, "delete the message" in refused.text) == ("Conflict", True)
        assert look(queue, sent).json["reply"]["body"] == "4"
        queue.delete(second)


class TestCrashes:
    @pytest.mark.parametrize("applied", [False, True])
    @pytest.mark.parametrize("attributes", [{}, {"rewind_seconds": 600}, {"ordered": True}])
    def test_a_reply_stopping_at_any_call_of_the_store_is_whole_or_not_there(
        self,
        world: World,
        make_queue: MakeQueue,
        monkeypatch: pytest.MonkeyPatch,
        attributes: dict[str, Any],
        applied: bool,
    ) -> None:
        queue = make_queue("orders", **attributes)
        for calls in range(20):
            sent = ask(queue, group="g")
            (received,) = queue.receive(group="g") if attributes.get("ordered") else queue.receive()
            store = BrokenStore(world, monkeypatch)
            store.break_after(calls, applied=applied)
            first = answer(queue, received)
            store.mend()
            monkeypatch.undo()
            if not store.failed:
                assert first.status == 200
                return
            world.clock.pass_seconds(2)
            there = state(queue, sent) == "replied"
            found = queue.client.get(f"{queue.path}/messages/{sent['id']}")
            assert (found.status == 200) != there
            assert answer(queue, received).status == 200
            assert look(queue, sent).json["reply"]["body"] == "4"
        pytest.fail("the store never broke")

    @pytest.mark.parametrize("applied", [False, True])
    def test_an_asker_stopping_while_it_gives_up_is_told_the_same_later(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch, applied: bool
    ) -> None:
        for calls in range(20):
            sent, received = asked(queue)
            world.clock.pass_seconds(SECONDS + 2)
            store = BrokenStore(world, monkeypatch)
            store.break_after(calls, applied=applied)
            look(queue, sent)
            store.mend()
            monkeypatch.undo()
            assert answer(queue, received).code == "ReplyTooLate"
            assert state(queue, sent) == "timed_out"
            if not store.failed:
                return
        pytest.fail("the store never broke")


class TestTheDeadline:
    def test_nobody_receives_an_expired_request(self, world: World, queue: TestQueue) -> None:
        sent = ask(queue, seconds=5)
        world.clock.pass_seconds(5)
        assert queue.receive() == []
        assert state(queue, sent) == "timed_out"

    def test_between_clocks_nobody_gives_up_before_all_of_them_are_over(self) -> None:
        world = World(shared_caches=False)
        alice = world.client("alice")
        alice.put("/queues/orders")
        queue = TestQueue(alice, "orders")
        sent = ask(queue, seconds=5)
        begun_ms = world.clock.now_ms()
        world.clock.pass_seconds(5)
        assert queue.receive() == []
        assert state(queue, sent) == "waiting"
        assert state(queue, sent, 20) == "timed_out"
        assert 7_000 <= world.clock.now_ms() - begun_ms < 7_200
        world.engine.close()

    def test_a_late_replier_is_told_so(self, world: World, queue: TestQueue) -> None:
        _, received = asked(queue, seconds=20)
        assert to_ms(received["visible_at"]) == to_ms(received["reply_by"])
        world.clock.pass_seconds(20)
        late = answer(queue, received)
        assert (late.status, late.code) == (409, "ReplyTooLate")
        world.engine.remove_expired()
        assert answer(queue, received).code == "ReplyTooLate"

    def test_a_slow_replier_and_its_asker_are_told_the_same(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent, received = asked(queue, seconds=20)
        told: list[str] = []

        def pass_time() -> None:
            world.clock.pass_seconds(22)
            told.append(state(queue, sent))

        before_transactions(world, monkeypatch, pass_time)
        assert answer(queue, received).code == "ReplyTooLate"
        assert told == ["timed_out"]
        assert state(queue, sent) == "timed_out"

    def test_a_reply_just_before_an_asker_gives_up_reaches_it(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent, received = asked(queue, seconds=20)

        def reply_first(operation: str, request: Any) -> None:
            if operation == "PutItem" and request["Item"]["pk"]["S"].startswith("Y#"):
                monkeypatch.undo()
                world.clock.pass_seconds(-3)
                assert answer(queue, received).status == 200
                world.clock.pass_seconds(3)

        world.clock.pass_seconds(22)
        before_each_call(world, monkeypatch, reply_first)
        assert state(queue, sent) == "replied"

    @pytest.mark.parametrize("replied", [True, False])
    def test_an_end_is_kept_for_five_minutes(
        self, world: World, queue: TestQueue, replied: bool
    ) -> None:
        sent = ask(queue)
        if replied:
            answer(queue, queue.receive()[0])
        end = "replied" if replied else "timed_out"
        world.clock.pass_seconds(SECONDS + 3)
        assert state(queue, sent) == end
        world.clock.pass_seconds(296)  # 299 s behind the deadline
        assert state(queue, sent) == end
        world.clock.pass_seconds(1)  # TTL has removed nothing yet
        gone = look(queue, sent)
        assert (gone.status, gone.code) == (404, "ReplyNotFound")
        world.clock.pass_seconds(1)
        world.engine.remove_expired()
        assert look(queue, sent).code == "ReplyNotFound"
        assert not [each for each in world.items() if each["pk"]["S"].startswith("Y#")]


class TestWaiting:
    def test_it_ends_with_the_reply(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent, received = asked(queue)
        begun_ms = world.clock.now_ms()
        after(world, monkeypatch, 3, lambda: answer(queue, received))
        assert state(queue, sent, 20) == "replied"
        assert world.clock.now_ms() < begun_ms + 3_300

    def test_it_ends_with_its_time(self, world: World, queue: TestQueue) -> None:
        sent = ask(queue)
        begun_ms = world.clock.now_ms()
        assert state(queue, sent, 2.5) == "waiting"
        assert world.clock.now_ms() == begun_ms + 2_500

    def test_it_ends_with_the_deadline(self, world: World, queue: TestQueue) -> None:
        sent = ask(queue, seconds=5)
        begun_ms = world.clock.now_ms()
        assert state(queue, sent, 20) == "timed_out"
        assert 5_000 <= world.clock.now_ms() - begun_ms < 5_200

    def test_twenty_seconds_cost_at_most_seventy_five_units(
        self, world: World, queue: TestQueue
    ) -> None:
        sent = ask(queue)
        state(queue, sent)
        written, read = world.units(lambda: look(queue, sent, 20))
        assert (written, 60 < read <= 76.5) == (0, True)


class TestOtherFeatures:
    def test_a_dead_letter_lives_to_its_deadline(self, world: World, make_queue: MakeQueue) -> None:
        failed = make_queue("failed")
        queue = make_queue("orders", dead_letter={"queue": "failed", "max_receives": 9})
        first, second = ask(queue, "1"), ask(queue, "2")
        queue.act("dead-letter", *queue.receive_all())
        letters = {each["id"]: each for each in failed.receive_all()}
        assert {each["expires_at"] for each in letters.values()} == {
            each["reply_by"] for each in (first, second)
        }
        assert answer(failed, letters[first["id"]]).status == 200
        assert answer(failed, letters[first["id"]]).status == 200
        assert state(queue, first) == "replied"
        failed.give_back(letters[second["id"]])
        failed.run("redrive")
        (back,) = queue.receive_all()
        assert (back["id"], back["reply_by"]) == (second["id"], second["reply_by"])
        queue.act("dead-letter", back)
        world.clock.pass_seconds(SECONDS)
        assert failed.receive_all() == queue.receive_all() == []

    def test_a_purge_leaves_nobody_to_reply(self, world: World, queue: TestQueue) -> None:
        sent, received = asked(queue)
        queue.run("purge")
        assert answer(queue, received).code == "ReceiptExpired"
        world.clock.pass_seconds(SECONDS + 2)
        assert state(queue, sent) == "timed_out"

    def test_a_rewind_brings_a_request_back_until_its_deadline(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("orders", rewind_seconds=3_600)
        begun_ms = world.clock.now_ms()
        sent = ask(queue)
        answer(queue, queue.receive()[0])
        world.clock.pass_seconds(3)
        assert queue.run("rewind", to=begun_ms / 1000)["done"] == 1
        (again,) = queue.receive()
        assert answer(queue, again, "5").code == "Conflict"
        queue.delete(again)
        world.clock.pass_seconds(SECONDS)
        assert queue.run("rewind", to=begun_ms / 1000)["done"] == 0
        assert look(queue, sent).json["reply"]["body"] == "4"

    def test_a_request_given_back_for_long_keeps_its_deadline(
        self, world: World, queue: TestQueue
    ) -> None:
        sent = ask(queue, seconds=600)
        queue.give_back(*queue.receive(), delay_seconds=300)
        world.clock.pass_seconds(300)
        (received,) = queue.receive()
        assert received["reply_by"] == received["expires_at"] == sent["reply_by"]
        assert answer(queue, received).status == 200

    def test_a_late_attempt_keeps_its_note(self, world: World, queue: TestQueue) -> None:
        token = attempt(world)
        world.clock.pass_seconds(60)
        message = {"body": "x", "reply": {"seconds": SECONDS}}
        sent = queue.try_send([message], attempt=token).json["messages"][0]
        world.clock.pass_seconds(3)
        assert queue.try_send([message], attempt=token).json["messages"][0] == sent
        assert answer(queue, queue.receive()[0]).status == 200
        assert state(queue, sent) == "replied"

    def test_a_receiver_made_later_has_the_request_too(
        self, world: World, queue: TestQueue
    ) -> None:
        sent = ask(queue)
        world.clock.pass_seconds(1)
        queue.add_receiver("audit", start="earliest")
        (first,), (second,) = queue.receive(), queue.receive(receiver="audit")
        assert answer(queue, second).status == 200
        assert answer(queue, first, "5").code == "Conflict"
        assert look(queue, sent).json["reply"]["body"] == "4"

    def test_a_function_knows_the_deadline_and_may_reply(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("orders", invoke={"function": "handler"})
        told: list[int] = []

        def handle(event: dict[str, Any]) -> None:
            for record in event["Records"]:
                message = {"id": record["messageId"], "receipt": record["receiptHandle"]}
                told.append(answer(queue, message, record["cirrusmq"]["reply_by"]).status)

        world.handle = handle
        sent = ask(queue)
        world.settle()
        assert told == [200]
        assert look(queue, sent).json["reply"]["body"] == sent["reply_by"]
        assert queue.counts() == {}

    def test_a_clients_own_process_leaves_the_send_to_the_service(self) -> None:
        world = World(in_process=True)
        alice = world.client("alice")
        alice.put("/queues/orders")
        queue = TestQueue(alice, "orders")
        queue.send("plain")
        sent = ask(queue)
        received = {each["id"]: each for each in queue.receive_all()}[sent["id"]]
        queue.give_back(received, delay_seconds=2)
        world.clock.pass_seconds(2)
        assert answer(queue, queue.receive()[0]).status == 200
        assert state(queue, sent) == "replied"
        assert world.own is not None
        assert world.own.refused == []
        world.engine.close()

    def test_request_and_reply_are_billed_as_messages(self, world: World, queue: TestQueue) -> None:
        sent = ask(queue)
        received = queue.receive()[0]
        for _ in range(2):  # the same again is one reply
            assert answer(queue, received).status == 200
        assert state(queue, sent) == "replied"
        world.settle()
        assert usage(world) == {
            "queue:orders sent": 2,
            "queue:orders received": 1,
            "queue:orders deleted": 1,
        }

    def test_giving_up_is_billed_as_no_reply(self, world: World, queue: TestQueue) -> None:
        sent = ask(queue)
        world.clock.pass_seconds(70)
        assert state(queue, sent) == "timed_out"
        world.settle()
        assert usage(world)["queue:orders sent"] == 1


class TestOtherAccounts:
    def test_only_the_asking_account_reads_the_reply(self, queue: TestQueue, bob: Client) -> None:
        queue.client.put(f"{queue.path}/grants/bob", {"permission": "send"})
        path = f"/queues/alice:{queue.name}/messages"
        message = {"body": "x", "reply": {"seconds": SECONDS}}
        (asked,) = bob.post(path, {"messages": [message]}).json["messages"]
        (received,) = queue.receive()
        assert answer(queue, received, client=bob).code == "Forbidden"
        assert answer(queue, received).status == 200
        assert look(queue, asked).json == {"state": "waiting"}
        assert look(queue, asked, client=bob).json["reply"]["body"] == "4"
        own = ask(queue)
        assert look(queue, own, client=bob).json == {"state": "waiting"}

    def test_another_account_gives_nothing_up(
        self, world: World, queue: TestQueue, bob: Client
    ) -> None:
        queue.client.put(f"{queue.path}/grants/bob", {"permission": "send"})
        sent = ask(queue)
        lie = {**sent, "reply_by": sent["sent_at"]}
        world.clock.pass_seconds(3)
        assert look(queue, lie, client=bob).json == {"state": "timed_out"}
        (received,) = queue.receive()
        assert answer(queue, received).status == 200
        assert answer(queue, received).status == 200
        assert state(queue, sent) == "replied"

    def test_another_queue_does_not_show_it(self, make_queue: MakeQueue) -> None:
        queue, other = make_queue("orders"), make_queue("other")
        sent = ask(queue)
        answer(queue, queue.receive()[0])
        assert state(other, sent) == "waiting"


class TestRefusals:
    @pytest.mark.parametrize("place", [0, 1])
    @pytest.mark.parametrize("atomic", [True, False])
    def test_a_batch_has_one_message(self, queue: TestQueue, place: int, atomic: bool) -> None:
        messages: list[dict[str, Any]] = [{"body": "x"}, {"body": "y"}]
        messages[place]["reply"] = {"seconds": 5}
        reply = queue.try_send(messages, atomic=atomic)
        entry = reply.json if atomic else reply.json["messages"][place]["error"]
        assert (entry["code"], entry["parameter"]) == ("InvalidParameter", "messages")

    def test_a_plain_message_has_none(self, queue: TestQueue) -> None:
        queue.send("plain")
        (received,) = queue.receive()
        assert "reply_by" not in received
        refused = answer(queue, received)
        assert (refused.status, refused.json["parameter"]) == (400, "id")
        queue.delete(received)

    def test_a_receipt_must_be_of_the_message(self, queue: TestQueue) -> None:
        first, second = ask(queue), ask(queue)
        held = {each["id"]: each["receipt"] for each in queue.receive_all()}
        other = {"id": first["id"], "receipt": held[second["id"]]}
        refused = answer(queue, other)
        assert (refused.status, refused.json["parameter"]) == (400, "receipt")
        assert answer(queue, {**first, "receipt": "x"}).code == "ReceiptExpired"

    @pytest.mark.parametrize("size", [262_144, 262_145])
    def test_a_reply_has_at_most_256_kb(self, queue: TestQueue, size: int) -> None:
        _, received = asked(queue)
        reply = answer(queue, received, "é" + "x" * (size - 2))
        assert reply.code == (None if size == 262_144 else "MessageTooLarge")

    @pytest.mark.parametrize("kept_from", [0, 64])
    def test_a_reply_may_be_all_escapes(self, kept_from: int) -> None:
        world = World(bodies_in_s3_from=kept_from)
        alice = world.client("alice")
        alice.put("/queues/orders")
        queue = TestQueue(alice, "orders")
        sent = ask(queue)
        body = "\x01" * 262_144
        assert answer(queue, queue.receive()[0], body).status == 200
        assert look(queue, sent).json["reply"]["body"] == body
        world.engine.close()


@pytest.mark.parametrize(
    ("case", "writes", "reads"),
    [("send", 1, 0), ("plain", 1, 0), ("look", 0, 0.5), ("reply", 4, 1), ("give up", 1, 0.5)],
)
def test_a_request_costs_so_much(
    world: World, make_queue: MakeQueue, case: str, writes: int, reads: float
) -> None:
    queue = make_queue("orders", partitions=1)
    sent, received = asked(queue, body="1")
    queue.send("other")  # attributes are cached
    if case == "give up":
        world.clock.pass_seconds(SECONDS + 2)
    acts: dict[str, Any] = {
        "send": lambda: ask(queue, "1"),
        "plain": lambda: queue.send("1"),
        "look": lambda: look(queue, sent),
        "reply": lambda: answer(queue, received),
        "give up": lambda: look(queue, sent),
    }
    world.engine.reset_capacity()
    acts[case]()
    used = world.engine.capacity()["by_table"][world.tables.messages]
    assert (used["write_units"], used["read_units"]) == (writes, reads)
