"""The file: its YAML, the lines of what is wrong in it, and values as the service keeps them."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cirrusmq.model.queue import QueueAttributes
from cirrusmq.model.topic import TopicAttributes
from cirrusmq_client import answers
from cirrusmq_local.declarations import contract, document, yaml_text
from cirrusmq_local.declarations.document import BadFile
from cirrusmq_local.declarations.resources import Place
from cirrusmq_local.declarations.yaml_text import TextError


def problems(text: str) -> list[tuple[int, str]]:
    with pytest.raises(BadFile) as refused:
        document.parse(text)
    return refused.value.problems


@pytest.mark.parametrize(
    ("lines", "line", "problem"),
    [
        (["queues: {}"], 1, "version: must be 1"),
        (["version: 2"], 1, "version: must be 1"),
        (["version: true"], 1, "version: must be 1"),
        (["- version: 1"], 1, "must have version: 1, and queues or topics"),
        ([""], 1, "must have version: 1, and queues or topics"),
        (["version: 1", "queus: {}"], 2, "queus: must be version, queues or topics"),
        (["version: 1", "queues: [a]"], 2, "queues: must be a mapping of names to attributes"),
        (["version: 1", "queues:", "  a: 3"], 3, "queues.a: must be a mapping of attributes"),
        (
            ["version: 1", "queues:", "  a:", "    grants: {b: 7}"],
            4,
            "queues.a.grants.b: must be a mapping of attributes",
        ),
        (
            ["version: 1", "queues:", "  a:", "    delay_second: 3"],
            4,
            "queue a: delay_second: this field is not known",
        ),
        (
            ["version: 1", "queues:", "  a:", "    ordered: yes"],
            4,
            "queue a: ordered: Expected bool, got str",
        ),
        (
            ["version: 1", "queues:", "  a:", "    labels: {x: y, z: 1}"],
            4,
            "queue a: labels[...]: must be a text of at most 256 characters",
        ),
        (
            [
                "version: 1",
                "queues:",
                "  a:",
                "    delay_seconds: 9",
                "    dead_letter:",
                "      queue: b",
                "      max_receives: 0",
            ],
            7,
            "queue a: dead_letter.max_receives: must be an integer from 1 to 1,000"
            " (Expected int >= 1)",
        ),
        (
            ["version: 1", "queues:", "  a:", "    rewind_seconds: 4000000"],
            4,
            "queue a: rewind_seconds: must be an integer from 0 to 1,296,000 seconds"
            " (Expected int <= 1296000)",
        ),
        (
            [
                "version: 1",
                "queues:",
                "  a:",
                "    message_retention_seconds: 60",
                "    delay_seconds: 60",
            ],
            5,
            "queue a: delay_seconds: must be 0 to 59, below message_retention_seconds",
        ),
        (
            [
                "version: 1",
                "queues:",
                "  a:",
                "    retry:",
                "      policy: custom",
                "      waits: [1, 0]",
            ],
            6,
            "queue a: retry.waits[1]: must be a number from 0.01 to 43,200",
        ),
        (
            ["version: 1", "queues:", "  9 a:"],
            3,
            "queue 9 a: name: must be 1 to 80 characters: letters, digits, '-' and '_'",
        ),
        (
            ["version: 1", "queues:", "  a:", "    receivers:", "      Default: {}"],
            5,
            "receiver a/Default: name: must not be default, which is the queue itself",
        ),
        (
            ["version: 1", "queues:", "  a:", "    receivers:", "      r: {start: soon}"],
            5,
            "receiver a/r: start: must be an RFC 3339 time, such as 2026-11-20T08:00:00.123Z",
        ),
        (
            ["version: 1", "queues:", "  a:", "    grants: {bob: own}"],
            4,
            "grant a/bob: permission: must be one of send, receive, send_receive, info, admin,"
            " full",
        ),
        (
            ["version: 1", "queues:", "  Orders:", "  orders:"],
            4,
            "queue orders: is queue Orders to the service, which ignores case",
        ),
        (
            ["version: 1", "topics:", "  sales:", "    subscriptions:", "      web: {}"],
            5,
            "subscription sales/web: protocol: must be queue, http or pull",
        ),
        (
            [
                "version: 1",
                "topics:",
                "  sales:",
                "    subscriptions:",
                "      web:",
                "        protocol: http",
                "        endpoint: https://me@example.com/",
            ],
            7,
            "subscription sales/web: endpoint: must not have a user or a password",
        ),
        (
            [
                "version: 1",
                "topics:",
                "  sales:",
                "    subscriptions:",
                "      group:",
                "        protocol: pull",
                "        filter: {sql: 'a >'}",
            ],
            7,
            "subscription sales/group: sql: ",
        ),
    ],
)
def test_a_fault_is_told_with_its_line_and_its_field(
    lines: list[str], line: int, problem: str
) -> None:
    found = problems("\n".join(lines))
    assert [at for at, _ in found] == [line]
    assert found[0][1].startswith(problem)


def test_all_faults_are_told_at_once() -> None:
    text = "version: 1\nqueues:\n  a: {delay_seconds: -1}\n  b: {ordered: 3}\n  c: {}\n"
    assert [line for line, _ in problems(text)] == [3, 4]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\nb: [\n", 3, "expected the node content, but found '<stream end>'"),
        ("a: 1\na: 2\n", 2, "a is given twice"),
        ("a:\n  1: b\n", 2, "a name must be a text: put it in quotes"),
        ("a: &x\n  b: *x\n", 1, "a value must not hold itself"),
        ("a: !!python/object:os.system b\n", 1, "could not determine a constructor"),
        ("a: \x07\n", 1, "must not have control characters"),
        ("a: *nothing\n", 1, "found undefined alias"),
        ("[" * 5_000, 1, ""),
    ],
)
def test_unsupported_yaml_is_refused(text: str, line: int, problem: str) -> None:
    with pytest.raises(TextError) as refused:
        yaml_text.load(text)
    assert refused.value.line == line
    assert refused.value.detail.startswith(problem)


def test_plain_words_and_times_are_texts_and_numbers_are_numbers() -> None:
    held, _ = yaml_text.load(
        "{a: no, b: on, c: 2026-11-20T08:00:00Z, d: 12:30, e: 010, f: 0x1f, g: .inf,"
        " h: 3, i: -0.5, j: 1e3, k: true, l: ~, m: '3'}"
    )
    assert list(held.values()) == [
        *("no", "on", "2026-11-20T08:00:00Z", "12:30", "010", "0x1f", ".inf"),
        *(3, -0.5, 1e3, True, None, "3"),
    ]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(value=JSON)
def test_written_values_are_read_again(value: object) -> None:
    assert yaml_text.load(yaml_text.dump({"held": value}))[0] == {"held": value}


def test_merged_mappings_are_read() -> None:
    text = (
        "version: 1\nqueues:\n  a: &usual\n    delay_seconds: 3\n  b:\n    <<: *usual\n"
        "    ordered: true\n"
    )
    read = document.parse(text)
    assert read[Place("queue", "b")].attributes["delay_seconds"] == 3
    assert read[Place("queue", "b")].attributes["ordered"] is True


def test_every_attribute_of_the_contract_is_known() -> None:
    """A field that is added to a struct of the contract is read and written from then on."""
    made = {"name", "id", "created_at", "modified_at", "topic", "starts_at"}
    shown_alone = {"retry_in_force", "dead_letter_error", "made_by", "paused", "gone"}
    for place, struct, answer in (
        (Place("queue", "a"), QueueAttributes, answers.QueueAttributes),
        (Place("topic", "sales"), TopicAttributes, answers.TopicAttributes),
    ):
        known = set(contract.complete(place, {}))
        assert known == set(struct.__struct_fields__)
        fixed = {"message_retention_seconds"} if place.kind == "topic" else set()
        assert known == set(answer.__annotations__) - made - fixed
    shown = set()
    for protocol, endpoint in (("pull", None), ("queue", "a"), ("http", "https://example.com")):
        given = {"protocol": protocol} | ({"endpoint": endpoint} if endpoint else {})
        shown |= set(contract.complete(Place("subscription", "web", "sales"), given))
    assert shown == set(answers.SubscriptionAttributes.__annotations__) - made - shown_alone
    receiver = set(contract.complete(Place("receiver", "r", "a"), {}))
    of_receivers = set(answers.ReceiverAttributes.__annotations__) - made
    assert receiver == of_receivers - {"operation", "paused", "receive_rate", "labels"}


def test_defaults_are_those_of_the_contract() -> None:
    assert contract.differing(Place("queue", "a"), contract.complete(Place("queue", "a"), {})) == {}
    held = contract.complete(Place("queue", "a"), {"receive_wait_seconds": 1, "partitions": 5})
    assert contract.differing(Place("queue", "a"), held) == {
        "receive_wait_seconds": 1,
        "partitions": 5,
    }
    assert json.loads(msgspec.json.encode(held)) == held
