"""The deployment's secret, which signs cursors, attempts and posts: two generations of it.

It is kept outside of the tables, as one JSON document, and read at its first use; again when it is
older than ten minutes. A rotation adds a generation that is used from a later moment on, when
every environment has read it:

    turned over           12:00  ── known to all by 12:10 ──  used from 12:20
    environment A, read   11:59 ........ 12:09
    environment B, read        12:01 ........ 12:11

Until the next rotation, signatures of the older generation are accepted, and posts carry the
signatures of both. A reading that fails changes nothing if one succeeded before; if none did for
20 minutes, as in an environment that was idle, a signature may be good though it is not known.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import threading
from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from cirrusmq.base import limits
from cirrusmq.base.errors import InUse, Unavailable
from cirrusmq.base.formats import later_release
from cirrusmq.base.shapes import decode_json
from cirrusmq.runtime.clock import Clock

SECRET_BYTES = 32
READ_AGAIN_MS = 600_000
USED_AFTER_MS = 1_200_000
"""From the rotation: readings that are due, and some that fail, are over by then."""
_TRY_AGAIN_MS = 60_000
KEPT_MS = 86_400_000
"""A generation signs for at least this time: a topic's log, with its cursors, lives a day."""
_LATER = "The deployment's secret is damaged, or was written by a later release; use that one."
_logger = logging.getLogger(__name__)


class Generation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """32 bytes in hex, and the service's time from which they sign."""

    key: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    from_ms: int = 0

    @property
    def key_bytes(self) -> bytes:
        """The 32 bytes of the key."""
        return bytes.fromhex(self.key)


class Generations(Generation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The document: the newest generation, and the one before it."""

    previous: Generation | None = None


def turned_over(document: str, now_ms: int, key: bytes) -> str:
    """Returns the document with a new generation. Raises InUse in the first day of the newest.

    Raises Unavailable for a document of a later release, whose unknown members would be lost.
    """
    try:
        held = decode_json(document, Generations)
    except msgspec.ValidationError as error:
        raise later_release("the deployment's secret", _LATER) from error
    if held.previous is not None and now_ms < held.from_ms + KEPT_MS:
        raise InUse("the secret was turned over less than a day ago, and the older one is in use")
    newest = Generation(key=held.key, from_ms=held.from_ms)
    return written(Generations(key=key.hex(), from_ms=now_ms + USED_AFTER_MS, previous=newest))


def derive(key: bytes, *parts: str) -> bytes:
    """Returns 32 bytes that derive from a key and texts."""
    return hmac.digest(key, "\n".join(parts).encode(), hashlib.sha256)


def written(generations: Generations) -> str:
    """Returns the document's JSON text."""
    return msgspec.json.encode(generations).decode()


class Secret:
    """The generations as one execution environment knows them."""

    def __init__(self, clock: Clock, read: Callable[[], str]) -> None:
        self._clock = clock
        self._read = read
        self._held: Generations | None = None
        self._read_ms = self._read_again_ms = 0
        self._lock = threading.Lock()

    def key_at(self, moment_ms: int) -> bytes:
        """Returns the key that signs at a moment: the same everywhere. Raises Unavailable."""
        held = self.generations()
        if moment_ms < held.from_ms and held.previous is not None:
            return held.previous.key_bytes
        return held.key_bytes

    def signing_key(self) -> bytes:
        """Returns the key that signs now."""
        return self.key_at(self._clock.now_ms())

    def accepted_keys(self) -> list[bytes]:
        """Returns the keys whose signatures are accepted; the signing one is the first."""
        held = self.generations()
        both = [held, *([held.previous] if held.previous is not None else [])]
        if self._clock.now_ms() < held.from_ms:
            both.reverse()
        return [each.key_bytes for each in both]

    def is_outdated(self) -> bool:
        """Returns True if others may sign with a generation that is not known here.

        this one     read 12:00 ──────────────── 12:21: the reading fails
        turned over      12:00:01 ── in use from 12:20:01 on, by others
        """
        self.generations()
        known_ms = USED_AFTER_MS - limits.CLOCK_SKEW_MS
        return self._clock.now_ms() >= self._read_ms + known_ms

    def generations(self) -> Generations:
        """Returns both generations, at most some minutes old."""
        now_ms = self._clock.now_ms()
        with self._lock:
            if self._held is None or now_ms >= self._read_again_ms:
                self._held = self._read_now(now_ms)
            return self._held

    def _read_now(self, now_ms: int) -> Generations:
        try:
            read = decode_json(self._read(), Generations)
        except Exception as error:
            # Nothing of the document is in the log: not even a part that cannot be read.
            _logger.warning("the deployment's secret cannot be read: %s", type(error).__name__)
            refusal = Unavailable()
            if isinstance(error, msgspec.ValidationError):
                refusal = later_release("the deployment's secret", _LATER)
            if self._held is None:
                raise refusal from error
            self._read_again_ms = now_ms + _TRY_AGAIN_MS
            return self._held
        self._read_ms, self._read_again_ms = now_ms, now_ms + READ_AGAIN_MS
        return read
