"""Responses of a URL to posts that failed, if its subscription asks for them (`keep_answers`).

pk `D#<subscription id>#answers`, sk the failure (`status 503`): the newest answer of each kind,
with the message's id and how long it took. TTL removes it a day later.

    posts fail      503    503    503    400    503 ....... 503
    written          x                    x                  x     each kind once in ten seconds

May be lost at any time: a write that fails is logged, and the post is settled as ever.
"""

from __future__ import annotations

import logging
import threading

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.base.shapes import decode_json
from cirrusmq.model.answer_sample import AnswerSample
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key
from cirrusmq.storage.parcels import page_request, ttl_seconds
from cirrusmq.subscriptions.delivery.due_marks import KIND

KEPT_MS = 86_400_000
EVERY_MS = 10_000
"""Time between two writes of a failure's answer by an environment: at most three units each."""
SHOWN = 20
"""Failures that are read: with all of their room they cost six read units."""
_MAX = 10_000
_logger = logging.getLogger(__name__)


class FailedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that did not take a message."""

    error: str
    """`status 503` or `redirect 302`."""
    at_ms: int
    """When its post began."""
    took_ms: int
    message_id: str
    sample: AnswerSample


class AnswersWritten:
    """When an environment last wrote an answer; safe to share between threads."""

    def __init__(self) -> None:
        self._at_ms: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def is_due(self, subscription_id: str, error: str, now_ms: int) -> bool:
        """Returns True if an answer is to be written now, which then counts as written."""
        key = subscription_id, error
        with self._lock:
            if 0 <= now_ms - self._at_ms.get(key, now_ms - EVERY_MS) < EVERY_MS:
                return False
            if len(self._at_ms) >= _MAX:
                self._at_ms.clear()
            self._at_ms[key] = now_ms
            return True


def keep_answer(core: Core, subscription_id: str, answer: FailedAnswer) -> None:
    """Writes an answer, unless one of its failure was written just now."""
    now_ms = core.now_ms()
    if not core.memory(AnswersWritten).is_due(subscription_id, answer.error, now_ms):
        return
    item: Item = {
        **key(_pk(subscription_id), answer.error),
        "a": {"N": str(answer.at_ms)},
        "d": {"N": str(answer.took_ms)},
        "m": {"S": answer.message_id},
        "h": {"S": msgspec.json.encode(answer.sample.headers).decode()},
        "b": {"B": answer.sample.body},
        "c": {"BOOL": answer.sample.cut},
        "expires_at": {"N": str(ttl_seconds(now_ms + KEPT_MS))},
    }
    try:
        core.store.write("PutItem", {"TableName": core.tables.messages, "Item": item})
    except Unavailable as error:
        _logger.warning("an answer of %s is not kept: %r", subscription_id, error.__cause__)


def read_answers(core: Core, subscription_id: str) -> list[FailedAnswer]:
    """Returns the newest answer of each failure, the newest first; at most SHOWN failures.

    Raises Unavailable.
    """
    request = page_request(
        core.tables.messages, _pk(subscription_id), " ", "~", SHOWN, consistent=False
    )
    items, _, _ = core.store.query(request)
    now_ms = core.now_ms()
    # TTL removes an item up to two days late.
    live = [_read(item) for item in items if int(item["expires_at"]["N"]) * 1000 > now_ms]
    return sorted(live, key=lambda each: -each.at_ms)


def _read(item: Item) -> FailedAnswer:
    return FailedAnswer(
        error=item["sk"]["S"],
        at_ms=int(item["a"]["N"]),
        took_ms=int(item["d"]["N"]),
        message_id=item["m"]["S"],
        sample=AnswerSample(
            headers=decode_json(item["h"]["S"], tuple[tuple[str, str], ...]),
            body=item["b"]["B"],
            cut=item["c"]["BOOL"],
        ),
    )


def _pk(subscription_id: str) -> str:
    return f"{KIND}#{subscription_id}#answers"
