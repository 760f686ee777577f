"""Who sent a message: what its content says, and what an onlooker is shown of it."""

from __future__ import annotations

import pytest

from cirrusmq.model.message import Message
from cirrusmq.model.sender import Onlooker, Sender, SenderDetail, sender_of, with_sender

PLAIN = Message(body="x", attributes={"a": "1"})
CALLER = Sender("bob", "CK7")


@pytest.mark.parametrize(
    ("owner", "detail", "noted"),
    [
        ("bob", "account", None),
        ("alice", "account", "bob"),
        ("bob", "key", "bob CK7"),
        ("alice", "key", "bob CK7"),
    ],
)
def test_a_content_notes_a_sender_beyond_its_owner(
    owner: str, detail: SenderDetail, noted: str | None
) -> None:
    expected = {"a": "1"} if noted is None else {"a": "1", "$from": noted}

    (message,) = with_sender([PLAIN], CALLER, owner, detail)

    assert message == Message(body="x", attributes=expected)
    assert message.attributes_as_sent == {"a": "1"}
    assert sender_of(message, owner) == Sender("bob", "CK7" if detail == "key" else None)


def test_messages_without_a_note_stay_the_same_objects() -> None:
    messages = [PLAIN]
    assert with_sender(messages, CALLER, "bob", "account") is messages


@pytest.mark.parametrize(("account", "key"), [("bob", "CK7"), ("alice", None), ("eve", None)])
def test_a_key_is_shown_to_its_own_account(account: str, key: str | None) -> None:
    (message,) = with_sender([PLAIN], CALLER, "alice", "key")
    assert Onlooker("alice", account).sender_of(message) == Sender("bob", key)


def test_a_message_without_a_note_was_sent_by_its_owner() -> None:
    assert Onlooker("alice", "bob").sender_of(PLAIN) == Sender("alice")


def test_bytes_of_the_reserved_name_are_no_sender() -> None:
    assert sender_of(Message(body="x", attributes={"$from": b"eve"}), "alice") == Sender("alice")
