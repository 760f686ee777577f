"""Attempts: claiming messages, posting each, and writing down what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from cirrusmq import confirmations, dead_letters
from cirrusmq.claims import Claim, claim
from cirrusmq.contents import read_contents
from cirrusmq.core import Core, Posted
from cirrusmq.message import Message
from cirrusmq.outbound import requests
from cirrusmq.parcel import DELETED, DROPPED, Parcel
from cirrusmq.receipt import NONCE_BYTES
from cirrusmq.schedules import hold_ms, latest_post_ms
from cirrusmq.source import Source
from cirrusmq.spent import parcel_key
from cirrusmq.storage.store import ConditionFailed
from cirrusmq.topic import Subscription


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one message's attempt."""

    parcel: Parcel
    place: int
    error: str | None
    """A status or a kind of error; None where it was delivered."""
    due_ms: int
    """When the next attempt of this subscription is due, where this one failed."""


class _Post(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is ours to post, if that starts by `latest_ms`."""

    parcel: Parcel
    place: int
    message: Message
    latest_ms: int


def attempt_all(
    core: Core,
    subscription: Subscription,
    source: Source,
    chosen: Sequence[tuple[Parcel, Sequence[int]]],
    *,
    alone: bool,
    latest_ms: int,
) -> list[Attempt]:
    """Attempt the messages at the chosen places; those that somebody else holds are left out, and
    those whose post could not start by `latest_ms` or in good time before their lease ends.

    `alone`: nothing else of the subscription is attempted meanwhile, so that a failure is that of
    the probe and waits for its ladder. Of several that fail together only the oldest does; the
    others are free as soon as the subscription delivers again.
    """
    claims = []
    latest: list[int] = []
    for parcel, places in chosen:
        seconds = hold_ms(core) // 1000
        begun_ms = core.now_ms()
        outcome = claim(core, source, parcel, places, seconds, lambda *_: _nonce(core))
        if isinstance(outcome, Claim):
            claims.append(outcome)
            latest.append(min(latest_ms, latest_post_ms(core, begun_ms)))
    contents = read_contents(core, source, [(held.parcel, held.places) for held in claims])
    posts = [
        _Post(parcel=held.parcel, place=place, message=messages[place], latest_ms=until_ms)
        for held, messages, until_ms in zip(claims, contents, latest, strict=True)
        for place in held.places
        if place in messages
    ]
    started_ms = core.now_ms()
    outcomes = list(core.apart(lambda each: _post(core, subscription, each), posts))
    policy = subscription.policy
    probing = policy is not None and policy.blocking == "probe"
    attempts: list[Attempt] = []
    failed_before = False
    for post, posted in zip(posts, outcomes, strict=True):
        if posted is None:
            continue
        error = posted.error
        waits = error is not None and (alone or not probing or not failed_before)
        failed_before = failed_before or error is not None
        attempts.append(
            Attempt(
                parcel=post.parcel,
                place=post.place,
                error=error,
                due_ms=_due_ms(core, subscription, post.parcel, post.place, started_ms)
                if waits
                else started_ms,
            )
        )
    for held in claims:
        _settle(core, subscription, source, [a for a in attempts if a.parcel is held.parcel])
    return attempts


def free(core: Core, parcel: Parcel, places: Sequence[int]) -> None:
    """Have messages attempted at once that were leased by somebody who is gone for certain."""
    now_ms = core.now_ms()
    _write_states(core, parcel, dict.fromkeys(places, now_ms))


def due_after(failed: Sequence[Attempt], now_ms: int) -> int:
    """When the next attempt is due; a message whose retries are used up is none to wait for.

    The sweep goes by this time where an execution comes to grief.
    """
    waiting = [each.due_ms for each in failed if each.due_ms < each.parcel.expires_ms]
    return min(waiting, default=now_ms)


def _post(core: Core, subscription: Subscription, post: _Post) -> Posted | None:
    """Post one message; None where it is too late to start."""
    assert subscription.endpoint is not None
    headers, body = requests.delivery(
        account=subscription.account,
        topic=subscription.topic,
        subscription=subscription.name,
        message_id=post.parcel.message_id(post.place),
        message=post.message,
        published_ms=post.parcel.sent_ms,
        content_format=subscription.content_format,
        secret=confirmations.signing_secret(core, subscription.id),
        request_id=f"{core.random.getrandbits(128):032x}",
        now_s=core.real_seconds(),
    )
    if core.now_ms() > post.latest_ms:
        return None
    return core.post(subscription.endpoint, headers, body)


def _due_ms(
    core: Core, subscription: Subscription, parcel: Parcel, place: int, started_ms: int
) -> int:
    """When a failed message is due again; its expiry where its retries are used up."""
    policy = subscription.policy
    assert policy is not None
    wait_ms = policy.wait_ms(parcel.receives[place], core.random.random)
    return parcel.expires_ms if wait_ms is None else started_ms + wait_ms


def _settle(
    core: Core, subscription: Subscription, source: Source, attempts: Sequence[Attempt]
) -> None:
    """Write down what became of a parcel's messages, if they are still ours."""
    if not attempts:
        return
    parcel = attempts[0].parcel
    states: dict[int, int] = {}
    for attempt in attempts:
        if attempt.error is None:
            states[attempt.place] = DELETED
        elif attempt.due_ms < parcel.expires_ms:
            states[attempt.place] = attempt.due_ms
        else:
            state = _give_up(core, subscription, source, parcel, attempt.place)
            if state is not None:
                states[attempt.place] = state
    if states:
        _write_states(core, parcel, states)


def _give_up(
    core: Core, subscription: Subscription, source: Source, parcel: Parcel, place: int
) -> int | None:
    """The state of a message whose retries are used up; None where it moved away.

    One that no dead-letter queue can take now is not lost: it stays to its expiry, as after a
    ladder that ends so, and holds nothing back.
    """
    policy = subscription.policy
    assert policy is not None
    target = dead_letters.dead_letter_queue(core, source)
    if target is not None:
        now_ms, nonce = core.now_ms(), parcel.nonces[place]
        left = dead_letters.move_to_queue(
            core, source, parcel, place, target, "retries", now_ms, nonce
        )
        return None if left is not None else parcel.visible_ms[place]
    return DROPPED if policy.ending == "dropped" else parcel.expires_ms


def _write_states(core: Core, parcel: Parcel, states: dict[int, int]) -> None:
    changes, conditions = [], []
    values: dict[str, Any] = {":ended": {"B": b""}}
    for place, state in states.items():
        changes += [f"v[{place}] = :v{place}", f"k[{place}] = :ended"]
        conditions.append(f"k[{place}] = :k{place}")
        values[f":v{place}"] = {"N": str(state)}
        values[f":k{place}"] = {"B": parcel.nonces[place]}
    request = {
        "TableName": core.tables.messages,
        "Key": parcel_key(parcel),
        "UpdateExpression": "SET " + ", ".join(changes),
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeValues": values,
    }
    try:
        core.store.write("UpdateItem", request)
    except ConditionFailed as failed:
        # One lease ran out and somebody else holds that message now; the others are still ours.
        if failed.item is not None and len(states) > 1:
            for place, state in states.items():
                _write_states(core, parcel, {place: state})


def _nonce(core: Core) -> bytes:
    return core.random.getrandbits(8 * NONCE_BYTES).to_bytes(NONCE_BYTES, "big")
