"""Where EMQ's calls meet what the core has: rates, names of tags, accounts, fields' names."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from tests.dialects.conftest import Key
from tests.dialects.emq_wire import Emq, RefusedError, fields

from cirrusmq_local.testing import Client, World

Q = (1, "shop/q")


@pytest.fixture
def emq(world: World, key: Key) -> Emq:
    """A program with a queue `q`, whose default tag is `main`."""
    emq = Emq(world, key)
    emq.queue("createQueue", (1, "q"), (8, "main"))
    return emq


def test_an_empty_receive_by_an_attribute_leaves_the_rate(
    world: World, emq: Emq, shop: Client
) -> None:
    assert shop.patch("/queues/q", {"receive_rate": 3}).status == 200
    for _ in range(3):
        emq.message("sendMessage", Q, (2, "x"))
    world.clock.pass_seconds(1 - world.clock.now_ms() % 1_000 / 1_000)

    wanted = fields((1, "STRING"), (2, "none"))
    assert emq.message("receiveMessage", Q, (3, 0), (4, "a"), (5, wanted)) == []
    assert len(emq.message("receiveMessage", Q, (3, 0))) == 3


@pytest.mark.parametrize("name", ["main", "MAIN", "default", "Default"])
def test_the_default_tags_name_is_taken(emq: Emq, shop: Client, name: str) -> None:
    """A tag of this name could never be read: receives by it are receives of the default tag."""
    assert emq.code("queue", "createTag", Q, (2, name)) == 12
    assert shop.get("/queues/q/receivers").json["receivers"] == []


def test_another_tag_takes_no_name_of_a_queue_without_a_default_tag(emq: Emq) -> None:
    emq.queue("createQueue", (1, "plain"))

    assert emq.queue("createTag", (1, "shop/plain"), (2, "main"))[2] == "main"


@pytest.mark.parametrize("name", ["", "main", "default"])
def test_the_default_tag_is_shown_by_each_of_its_names(emq: Emq, name: str) -> None:
    emq.message("sendMessage", Q, (2, "x"))

    told = emq.queue("getTagInfo", Q, (2, name))
    assert (told[2], told[3][3]) == ("main", 1)
    assert len(emq.message("receiveMessage", Q, (3, 0), (6, name))) == 1


def test_a_default_tags_name_has_at_most_64_characters(emq: Emq) -> None:
    assert emq.code("queue", "createQueue", (1, "long"), (8, "n" * 65)) == 2
    assert emq.code("queue", "getQueueInfo", (1, "shop/long")) == 6
    emq.queue("createQueue", (1, "short"), (8, "n" * 64))
    assert emq.queue("getQueueInfo", (1, "shop/short"))[10] == "n" * 64


@pytest.mark.parametrize("method", ["setPermission", "revokePermission", "queryPermissionForId"])
@pytest.mark.parametrize("account", [None, "", "x" * 65, "x" * 3_000, "a b"])
def test_an_impossible_account_is_a_bad_argument(
    emq: Emq, method: str, account: str | None
) -> None:
    given = [] if account is None else [(2, account)]

    with pytest.raises(RefusedError, match="developerId: must be 1 to 64") as refused:
        emq.queue(method, Q, *given, (3, 1))
    assert refused.value.code == 2


def test_setting_no_permission_checks_the_account_too(emq: Emq) -> None:
    assert emq.code("queue", "setPermission", Q, (2, "x" * 3_000), (3, 0)) == 2


TEXT, OTHER = fields((1, "STRING"), (2, "v")), fields((1, "NUMBER"), (2, "1"))
MANY = {f"a{number}": TEXT for number in range(17)}
ODD_ENTRY = fields((1, "1"), (2, "a"), (5, {"x" * 80: TEXT}))
FIELDS: dict[str, tuple[str, list[tuple[int, Any]], str]] = {
    "a name of an attribute": ("sendMessage", [(2, "a"), (5, {"": TEXT})], "messageAttributes"),
    "too many attributes": ("sendMessage", [(2, "a"), (5, MANY)], "messageAttributes"),
    "a type": ("sendMessage", [(2, "a"), (5, {"a": OTHER})], "messageAttributes"),
    "a batch's attribute": ("sendMessageBatch", [(2, [ODD_ENTRY])], "messageAttributes"),
    "no entries": ("deleteMessageBatch", [(2, [])], "deleteMessageBatchRequestEntryList"),
    "no dead ones": ("deadMessageBatch", [(2, [])], "deadMessageBatchRequestEntryList"),
    "no changes": (
        "changeMessageVisibilitySecondsBatch",
        [(2, [])],
        "changeMessageVisibilityRequestEntryList",
    ),
    "a receive's type": ("receiveMessage", [(4, "a"), (5, OTHER)], "attributeValue"),
    "a receive's tag": ("receiveMessage", [(6, "none")], "tagName"),
    "a tag's type": ("createTag", [(2, "t"), (5, "a"), (6, OTHER)], "attributeValue"),
    "a tag's rate": ("createTag", [(2, "t"), (4, 2**40)], "readQPSQuota"),
    "a tag that is not there": ("getTagInfo", [(2, "none")], "tagName"),
    "a tag to delete": ("deleteTag", [(2, "none")], "tagName"),
    "a tag that exists": ("createTag", [(2, "there"), (5, "b"), (6, TEXT)], "tagName"),
}
"""Methods, what they are given beside the queue, and the field at fault."""


@pytest.mark.parametrize("fault", FIELDS)
def test_a_refusal_names_the_field_of_the_caller(emq: Emq, fault: str) -> None:
    method, given, name = FIELDS[fault]
    emq.queue("createTag", Q, (2, "there"))

    with pytest.raises(RefusedError) as refused:
        emq.call("message" if "Message" in method else "queue", method, Q, *given)
    assert refused.value.text.startswith(f"{name}: "), refused.value.text


def test_a_reason_names_emqs_fields_too(emq: Emq) -> None:
    emq.queue("setQueueAttribute", Q, (2, fields((5, 100))))
    emq.queue("setQueueQuota", Q, (2, fields((2, b"\x0a\0\2" + b"\0" * 7 + b"\1\0"))))

    with pytest.raises(RefusedError, match=r"delaySeconds: .*, below messageRetentionSeconds"):
        emq.queue("setQueueAttribute", Q, (2, fields((1, 100))))
    emq.message("sendMessage", Q, (2, "x"))
    with pytest.raises(RefusedError, match=r"messages a second \(writeQps\)"):
        emq.message("sendMessage", Q, (2, "x"))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([(2, "x" * 1_025)], "messageBody: has 1025 bytes; messageMaximumBytes allows 1 to 1024"),
        (
            [(2, "x"), (5, {"a": fields((1, "STRING"), (2, "x" * 1_025))})],
            "messageAttributes: has 1025 bytes; messageMaximumBytes allows 0 to 1024",
        ),
    ],
)
def test_a_refused_size_has_emqs_names_alone(
    emq: Emq, given: list[tuple[int, Any]], reason: str
) -> None:
    emq.queue("setQueueAttribute", Q, (2, fields((6, 1_024))))

    with pytest.raises(RefusedError) as refused:
        emq.message("sendMessage", Q, *given)
    assert refused.value.args == (2, reason)


def test_a_too_large_answer_is_refused(emq: Emq, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("cirrusmq_dialects.emq.serve")  # as a name it is the function
    monkeypatch.setattr(module, "ANSWER_BYTES", 40)

    with pytest.raises(RefusedError) as refused:
        emq.queue("getQueueInfo", Q)
    assert refused.value.args == (2, "the answer: has at most 40 bytes")
