"""The attempts of one store call: two for those who wait for an answer, five for work behind them.

    the API's calls      throttled ─ to 0.2 s ─ 503 with `Retry-After`
    what nobody awaits   throttled ─ to 1 s ─ to 2 s ─ to 4 s ─ to 8 s ─ given up, 7.5 s on average

A key that takes no more writes is not helped by callers that sleep, and hold their environments
meanwhile: they are told to wait. Nor does a key stall a shard of the stream: what it refuses is
put aside. Sweeps, operations, metering and posts are slowed down by it as they should be: given
up, they would be done once more from where they were saved.

The SDK's own repeats are off, and we answer its event `needs-retry` with how long to wait. It
counts these attempts as it counts its own, by which the store knows that an earlier one may have
taken effect.
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
"""Before each further attempt."""
PATIENT_PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0)
_Response: TypeAlias = tuple[Any, Mapping[str, Any]]
"""The HTTP response, and what botocore parsed of it."""
_pauses: ContextVar[tuple[float, ...]] = ContextVar("pauses", default=LONGEST_PAUSES_SECONDS)
_random = random.SystemRandom()


@contextmanager
def patient() -> Iterator[None]:
    """For work that nobody waits for: five attempts of each store call in this context."""
    before = _pauses.set(PATIENT_PAUSES_SECONDS)
    try:
        yield
    finally:
        _pauses.reset(before)


def most_attempts() -> int:
    """Of each store call in this context."""
    return 1 + len(_pauses.get())


def limit_attempts(client: Any) -> None:
    """Have a client of DynamoDB, which has no retries of its own, repeat by these rules."""
    client.meta.events.register("needs-retry.dynamodb", _pause_seconds)


def _pause_seconds(
    attempts: int,
    response: _Response | None,
    caught_exception: Exception | None,
    **_: Any,
) -> float | None:
    """Seconds before the next attempt, by chance (full jitter); None: there is no further one."""
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
