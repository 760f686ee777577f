"""Signing keys: made, shown, rotated and deleted as others are; their secret is kept encrypted."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cirrusmq.access.signing_keys import UnknownKeyError, WrongSignatureError, verify_signature
from cirrusmq.base.errors import Unavailable
from cirrusmq.wiring.adapters import KeySealing
from cirrusmq_local.testing import Client, World


def make(client: Client, **fields: object) -> dict[str, Any]:
    reply = client.post("/keys", {"signing": True, **fields})
    assert reply.status == 201, reply.text
    made: dict[str, Any] = reply.json
    return made


def signs(world: World, key_id: str, secret: str) -> bool:
    """Whether a signature made with the secret is accepted."""
    world.core.cache.turn_over(("K#" + key_id, "key"))
    try:
        verify_signature(world.core, key_id, lambda held: held == secret)
    except (UnknownKeyError, WrongSignatureError):
        return False
    return True


def test_a_signing_key_is_told_from_others_by_its_id_and_in_listings(alice: Client) -> None:
    made = make(alice, description="for boto3")
    assert re.fullmatch("AKID[0-9a-z]{32}", made["access_key_id"])
    assert made["signing"] is True
    other = alice.post("/keys", {}).json
    assert other["signing"] is False
    listed = {each["access_key_id"]: each["signing"] for each in alice.get("/keys").json["keys"]}
    assert listed[made["access_key_id"]] is True
    assert listed[other["access_key_id"]] is False


def test_its_secret_is_nowhere_in_the_clear(world: World, alice: Client) -> None:
    made = make(alice)
    kept = repr([world.items(table) for table in ("directory", "messages", "usage")])
    assert made["access_key_id"] in kept
    assert made["secret"] not in kept


def test_it_signs_and_is_a_bearer_key_too(world: World, alice: Client) -> None:
    made = make(alice)
    assert signs(world, made["access_key_id"], made["secret"])
    assert not signs(world, made["access_key_id"], made["secret"] + "x")
    bearer = Client(world, f"Bearer {made['access_key_id']}:{made['secret']}")
    assert bearer.get("/queues").status == 200


def test_a_non_signing_key_is_as_unknown_as_none(world: World, alice: Client) -> None:
    other = alice.post("/keys", {}).json
    asked: list[str] = []

    def noted(secret: str) -> bool:
        asked.append(secret)
        return True

    for key_id in (other["access_key_id"], "AKID" + "x" * 32):
        with pytest.raises(UnknownKeyError):
            verify_signature(world.core, key_id, noted)
    assert len(asked) == 2  # so that the time tells nothing
    assert other["secret"] not in asked


def test_a_deleted_key_signs_no_more(world: World, alice: Client) -> None:
    made = make(alice)
    assert signs(world, made["access_key_id"], made["secret"])
    assert alice.delete(f"/keys/{made['access_key_id']}").status == 204
    assert not signs(world, made["access_key_id"], made["secret"])


def test_an_expired_key_signs_no_more(world: World, alice: Client) -> None:
    made = make(alice, expires_at="2026-11-18T12:00:00Z")
    assert signs(world, made["access_key_id"], made["secret"])
    world.clock.pass_seconds(3_600)
    assert not signs(world, made["access_key_id"], made["secret"])


def test_after_a_rotation_both_secrets_sign_for_the_grace(world: World, alice: Client) -> None:
    made = make(alice)
    path = f"/keys/{made['access_key_id']}/rotate"
    rotated = alice.post(path, {"grace_seconds": 60}).json
    assert rotated["signing"] is True
    assert rotated["secret"] != made["secret"]
    assert signs(world, made["access_key_id"], made["secret"])
    assert signs(world, made["access_key_id"], rotated["secret"])
    world.clock.pass_seconds(61)
    assert not signs(world, made["access_key_id"], made["secret"])
    assert signs(world, made["access_key_id"], rotated["secret"])


def test_a_sealed_secret_opens_for_its_own_key_alone(world: World) -> None:
    sealed = world.core.sealing.seal("AKIDone", "a secret")
    assert world.core.sealing.unseal("AKIDone", sealed) == "a secret"
    changed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    for key_id, content in (("AKIDtwo", sealed), ("AKIDone", changed), ("AKIDone", b"")):
        with pytest.raises(Unavailable):
            world.core.sealing.unseal(key_id, content)


def test_an_opened_secret_is_remembered_for_five_minutes(
    world: World, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(alice)
    opened: list[str] = []
    sealing = type(world.core.sealing)
    unseal = sealing.unseal

    def noted(self: object, key_id: str, sealed: bytes) -> str:
        opened.append(key_id)
        return unseal(world.core.sealing, key_id, sealed)

    monkeypatch.setattr(sealing, "unseal", noted)
    for _ in range(3):
        assert signs(world, made["access_key_id"], made["secret"])
    assert len(opened) == 1
    world.clock.pass_seconds(301)
    assert signs(world, made["access_key_id"], made["secret"])
    assert len(opened) == 2


def test_a_scope_is_the_signing_callers_too(world: World, alice: Client) -> None:
    made = make(alice, scope={"send": {"queues": ["orders"]}})
    caller = verify_signature(world.core, made["access_key_id"], lambda held: True)
    assert caller.scope is not None
    assert caller.scope.allows("send", "queues", "orders", "alice")
    assert not caller.scope.allows("receive", "queues", "orders", "alice")


def test_only_managing_seals_and_only_dialects_open(world: World, alice: Client) -> None:
    """By the policies of the template, which are in force here."""
    functions = {each.folder.name: each for each, _ in world._handlers.values()}
    for name, function in functions.items():
        for action, owner in (("kms:Encrypt", "manage"), ("kms:Decrypt", "dialects")):
            may = function.may(action, "Key.Arn", partition="AKIDx")
            assert may == (name == owner), (name, action)
    assert KeySealing.CONTEXT == "cirrusmq:signing-key"
