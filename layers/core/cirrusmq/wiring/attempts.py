"""The attempts of one store call: two if a caller waits for an answer, five for background work.

    the API's calls      throttled ─ to 0.2 s ─ 503 with `Retry-After`
    what nobody awaits   throttled ─ to 1 s ─ to 2 s ─ to 4 s ─ to 8 s ─ given up, 7.5 s on average

A key at its limit of writes is not helped by callers that sleep, and keep their environments busy:
they get an error with `Retry-After`. Nor does a key stall a shard of the stream: refused parts are
put aside. Sweeps, operations, metering and posts are slowed down by it as they should be: if they
gave up, they would start again from their last saved step.

The SDK's own repeats are off, and we answer its event `needs-retry` with the time to wait. It
counts these attempts like its own: so the store knows that an earlier one may have taken effect.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from botocore.exceptions import ConnectionError as NotConnected
from botocore.exceptions import HTTPClientError

from cirrusmq.runtime.store import REPEATABLE

LONGEST_PAUSES_SECONDS = (0.2,)
"""Longest pause before each further attempt."""
PATIENT_PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0)
_Response: TypeAlias = tuple[Any, Mapping[str, Any]]
"""The HTTP response, and botocore's parsed form of it."""
_pauses: ContextVar[tuple[float, ...]] = ContextVar("pauses", default=LONGEST_PAUSES_SECONDS)
_random = random.SystemRandom()


@contextmanager
def longer_retries() -> Iterator[None]:
    """Allows five attempts of each store call in this context, for work that nobody waits for."""
    before = _pauses.set(PATIENT_PAUSES_SECONDS)
    try:
        yield
    finally:
        _pauses.reset(before)


def most_attempts() -> int:
    """Returns the number of attempts of each store call in this context."""
    return 1 + len(_pauses.get())


def limit_attempts(client: Any) -> None:
    """Makes a client of DynamoDB, without retries of the SDK, repeat calls by these rules."""
    client.meta.events.register("needs-retry.dynamodb", _pause_seconds)


def _pause_seconds(
    attempts: int,
    response: _Response | None,
    caught_exception: Exception | None,
    **_: Any,
) -> float | None:
    """Returns the seconds before the next attempt, by full jitter, or None if it is the last."""
    if attempts >= most_attempts() or not _is_transient(response, caught_exception):
        return None
    return _random.random() * _pauses.get()[attempts - 1]


def _is_transient(response: _Response | None, caught: Exception | None) -> bool:
    if response is None:
        return isinstance(caught, NotConnected | HTTPClientError)
    http, parsed = response
    if http.status_code >= 500 or parsed.get("Error", {}).get("Code") in REPEATABLE:
        return True
    checksum = http.headers.get("x-amz-crc32")
    return checksum is not None and int(checksum) != zlib.crc32(http.content)
