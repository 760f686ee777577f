"""Posting a message, and storing the outcome.

The poster holds the subscription's lease, so no message is claimed: the write that settles one is
the only one, on the condition that the message is as it was when it was posted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from cirrusmq.base.limits import RESCUE_MS
from cirrusmq.lifecycle.dead_letters.move import dead_letter_queue
from cirrusmq.lifecycle.transfer import move_to_queue
from cirrusmq.model.message import Message
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.post_history import Post
from cirrusmq.model.retry import RetryPolicy
from cirrusmq.model.transitions import (
    Changes,
    MessageChange,
    as_in,
    changed,
    delivered,
    dropped,
    failed,
    kept,
)
from cirrusmq.push.pending import Push
from cirrusmq.push.rate_limiter import Pace
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.storage.changes import as_read, change, with_post
from cirrusmq.storage.parcels import parcel_key, read_parcel
from cirrusmq.subscriptions import confirmations
from cirrusmq.subscriptions.delivery.due_marks import DueMark, put_mark
from cirrusmq.subscriptions.failed_answers import FailedAnswer, keep_answer
from cirrusmq.webhooks import requests

RETRY_AFTER_SECONDS = 3_600.0
"""Longest wait that a subscriber's `Retry-After` may ask for, in real seconds."""
UNREADABLE = "content"
"""The error of a message whose body cannot be read now: nothing was posted."""
CandidateKey: TypeAlias = tuple[str, int, int]
"""Parcel's key, its partition, the message's index: in order of posting."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is to be posted."""

    parcel: Parcel
    """The parcel as it was read."""
    index: int
    mark: DueMark | None = None
    """The mark that led to it."""
    message: Message | None = None

    @property
    def key(self) -> CandidateKey:
        """Its identity among the candidates of its subscription."""
        return self.parcel.sort_key, self.parcel.partition, self.index

    @property
    def answer_bytes(self) -> int:
        """Bytes of its JSON, at most."""
        return self.parcel.answer_bytes(self.index)


class PostResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a candidate's post."""

    candidate: Candidate
    post: Post
    retry_after_ms: int = 0
    """Milliseconds after the post before which the subscriber wants no other one."""
    took_ms: int = 0
    """Milliseconds from its start to its end, on the core's clock."""

    @property
    def error(self) -> str | None:
        """A status or a kind of error; None if the message was delivered."""
        return self.post.error


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """A post whose result is written down."""

    result: PostResult
    candidate: Candidate
    """The candidate after the write."""
    due_ms: int | None
    """When it is posted again; None if it is not."""
    mark: DueMark | None
    """The mark that was put for it."""


def post(
    push: Push, candidate: Candidate, latest_ms: int, pace: Pace | None
) -> PostResult | Candidate:
    """Posts a message once. Returns the candidate if the post could not start by `latest_ms`."""
    core, subscription = push.core, push.subscription
    assert subscription.endpoint is not None
    if candidate.message is None:  # its body cannot be read now
        started_ms = _start(core, pace)
        return PostResult(candidate=candidate, post=Post(started_ms, None, UNREADABLE))
    headers, body = _request(push, candidate, candidate.message)
    started_ms = _start(core, pace)
    if started_ms > latest_ms:
        return candidate
    posted = core.post(subscription.endpoint, headers, body)
    took_ms = core.now_ms() - started_ms
    if subscription.keep_answers and posted.error and posted.sample is not None:
        answer = FailedAnswer(
            error=posted.error,
            at_ms=started_ms,
            took_ms=took_ms,
            message_id=candidate.parcel.message_id(candidate.index),
            sample=posted.sample,
        )
        keep_answer(core, subscription.id, answer)
    asked_seconds = min(posted.retry_after_seconds or 0.0, RETRY_AFTER_SECONDS)
    return PostResult(
        candidate=candidate,
        post=Post(started_ms, posted.status, posted.error),
        retry_after_ms=int(asked_seconds * 1_000 * core.clock.scale),
        took_ms=took_ms,
    )


def _start(core: Core, pace: Pace | None) -> int:
    """Returns the time at which a post starts: now, or as soon as the rate allows it."""
    return core.now_ms() if pace is None else pace.start(core)


def _request(push: Push, candidate: Candidate, message: Message) -> tuple[dict[str, str], bytes]:
    """Headers and body of one attempt to post a message."""
    core, subscription = push.core, push.subscription
    own = subscription.body_for(message.attributes, message.body)
    if own is not message.body:
        message = replace(message, body=own)
    message_id = candidate.parcel.message_id(candidate.index)
    secrets, now_s = confirmations.signing_secrets(core, subscription.id), core.real_seconds()
    if subscription.notifies:
        # Few do: the cold starts of others do without.
        from cirrusmq.webhooks import sns_requests

        return sns_requests.delivery(
            subscription,
            message_id,
            message,
            secrets=secrets,
            now_s=now_s,
            unsubscribe_token=confirmations.unsubscribe_token(core, subscription),
        )
    headers, body = requests.delivery(
        subscription,
        message_id,
        message,
        published_ms=candidate.parcel.sent_ms,
        secrets=secrets,
        request_id=f"{core.random.getrandbits(128):032x}",
        now_s=now_s,
    )
    if subscription.made_by_sns:
        from cirrusmq.webhooks import sns_requests

        headers |= sns_requests.headers_of(subscription, message_id)
    return headers, body


def settle(
    push: Push, results: Sequence[PostResult], free: frozenset[CandidateKey], marks_from_ms: int
) -> list[Settled]:
    """Writes down the results of one parcel's posts, in one write.

    free: messages that failed beside another one, which is the probe now: they wait for it alone.
    No mark is put before `marks_from_ms`.
    """
    parcel, now_ms = _as_read(results), push.core.now_ms()
    changes: dict[int, MessageChange] = {}
    settled: list[Settled] = []
    given_up: list[PostResult] = []
    for each in results:
        index = each.candidate.index
        due_ms, mark = None, None
        history = with_post(parcel, index, each.post)
        if each.error is None:
            changes[index] = delivered(parcel, index, history, now_ms)
        elif each.candidate.key in free:
            due_ms = each.post.at_ms
            changes[index] = failed(parcel, index, due_ms, history, now_ms)
        else:
            due_ms = _due_ms(push, each)
            # A used-up message waits for no time; should this stop here, its mark finds it.
            again_ms = max(each.post.at_ms if due_ms is None else due_ms, marks_from_ms)
            if not push.blocks:
                mark = mark_of(parcel, index, again_ms, each.error)
                put_mark(push.core, parcel, mark)
            changes[index] = failed(parcel, index, again_ms, history, now_ms)
            if due_ms is None:
                # The move to another queue takes the message's state from its parcel.
                given_up.append(each)
                continue
            due_ms = again_ms
        settled.append(Settled(result=each, candidate=each.candidate, due_ms=due_ms, mark=mark))
    left = _write(push, parcel, changes)
    settled = [_as_written(each, left) for each in settled]
    for each in given_up:
        candidate = replace(each.candidate, parcel=left)
        left = give_up(push, candidate, each.error or "")
        candidate = replace(candidate, parcel=left)
        settled.append(Settled(result=each, candidate=candidate, due_ms=None, mark=None))
    return settled


def give_up(push: Push, candidate: Candidate, error: str) -> Parcel:
    """Moves a message to the dead-letter queue, drops it, or keeps it to its expiry.

    A message that no dead-letter queue can take now is not lost: it stays to its expiry, as after a
    policy that ends so, and holds nothing back.
    """
    core, parcel, index = push.core, candidate.parcel, candidate.index
    if not parcel.live(index):
        return parcel  # an earlier try took effect, and its answer was lost
    target = dead_letter_queue(core, push.source)
    if target is not None:
        now_ms = core.now_ms()
        reason = "retries" if is_used_up(push, candidate) else "expired"
        left = move_to_queue(core, push.source, parcel, index, target, reason, now_ms)
        if left is not None:
            return left
    if _policy(push).ending == "dropped":
        return _write(push, parcel, {index: dropped()})
    put_mark(core, parcel, mark_of(parcel, index, parcel.expires_ms, error), kept=True)
    return _write(push, parcel, {index: kept(parcel)})


def is_used_up(push: Push, candidate: Candidate) -> bool:
    """Returns True if a message had all posts of its policy, and only its end is missing."""
    retries = _policy(push).max_retries
    return retries is not None and candidate.parcel.receives[candidate.index] > retries


def _as_written(settled: Settled, left: Parcel) -> Settled:
    """Returns a post as the store has it: an earlier try may have drawn another wait."""
    candidate = replace(settled.candidate, parcel=left)
    index = candidate.index
    if settled.due_ms is None or not left.live(index):
        return replace(settled, candidate=candidate, due_ms=None, mark=None)
    due_ms, mark = left.visible_ms[index], settled.mark
    if mark is not None:
        mark = replace(mark, due_ms=due_ms)
    return replace(settled, candidate=candidate, due_ms=due_ms, mark=mark)


def _as_read(results: Sequence[PostResult]) -> Parcel:
    """Returns the parcel of these posts, each of its messages as it was when it was posted."""
    parcel = results[0].candidate.parcel
    for each in results[1:]:
        parcel = _with_places(parcel, each.candidate.parcel, [each.candidate.index])
    return parcel


def _due_ms(push: Push, result: PostResult) -> int | None:
    """Returns when a failed message is posted again, or None if it is dead-lettered or dropped.

    After the policy's wait, or the time of a `Retry-After` if that is longer.

    Its retries may be used up, or its life: a message that could not be tried again before its
    last two minutes is moved to the dead-letter queue, if there is one.
    """
    parcel, index = result.candidate.parcel, result.candidate.index
    wait_ms = _policy(push).wait_ms(parcel.receives[index] + 1, push.core.random.random)
    if wait_ms is None:
        return None
    due_ms = result.post.at_ms + max(wait_ms, result.retry_after_ms)
    if due_ms >= parcel.expires_ms:
        return None
    if push.source.dead_letter is None or due_ms <= parcel.expires_ms - RESCUE_MS:
        return due_ms
    return None if dead_letter_queue(push.core, push.source) is not None else due_ms


def _policy(push: Push) -> RetryPolicy:
    policy = push.subscription.policy
    assert policy is not None
    return policy


def mark_of(parcel: Parcel, index: int, due_ms: int, error: str) -> DueMark:
    """Returns the mark of a message of a parcel."""
    return DueMark(due_ms, parcel.sort_key, index, parcel.position(index), error)


def _write(push: Push, parcel: Parcel, changes: Changes) -> Parcel:
    """Writes results of messages, each if it is as it was read. Returns the parcel after it.

    poster:  reads v = 5, r = 0 ── posts ── v = 5 and r = 0 still? v = 10, r = 1 ── answer lost
    again, with another draw:               v = 10, r = 1: done before, and it waits until 10
    """
    if not changes:
        return parcel
    still = as_read(parcel, changes, "visible_ms", "receives")
    request = change(push.core.tables.messages, parcel_key(parcel), changes, still)
    after = changed(parcel, changes)
    try:
        push.core.store.write("UpdateItem", request)
    except ConditionFailed as failure:
        if failure.item is None:
            return after
        if len(changes) == 1:
            return _with_places(after, read_parcel(failure.item), changes)
        for index, each in changes.items():
            after = _with_places(after, _write(push, parcel, {index: each}), [index])
    return after


def _with_places(parcel: Parcel, other: Parcel, indexes: Iterable[int]) -> Parcel:
    """Returns the parcel with some of its messages as another reading has them."""
    return changed(parcel, {index: as_in(other, index) for index in indexes})
