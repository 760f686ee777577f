"""Retry policies: the wait after each failed delivery, and the end after the last retry.

Every policy is the same three things: a row of waits of which the last one repeats, a share of
each wait that is drawn at random (jitter), and the number of retries. n retries are n + 1
deliveries. The resources decide which policies they take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from cirrusmq.base.errors import InvalidParameter

MAX_RETRIES_RANGE = (0, 1_000_000)
INTERVAL_SECONDS_RANGE = (0.01, 30)
WAIT_SECONDS_RANGE = (0.01, 43_200)
WAIT_COUNT_RANGE = (1, 200)
JITTER_RANGE = (0, 1)

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS

# While a subscription fails: `in_order` holds every later message back until the failing one is
# delivered or dropped; `probe` tries the oldest alone; `none` attempts the others as usual.
Blocking = Literal["in_order", "probe", "none"]

# After the last retry: kept, out of the way, to the message's expiry and dropped then; dropped at
# once for this subscription; moved to the dead-letter queue. A dead-letter queue that was named
# takes the message in every case.
Ending = Literal["expiry", "dropped", "dead_letter"]


class PolicyDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """A policy as the contract's table has it, before a `retry` object changes its members.

    retries: None means no end. takes: the members of `retry` that the policy has.
    """

    waits_ms: tuple[int, ...] = ()
    jitter: float = 0.0
    retries: int | None
    ending: Ending = "dead_letter"
    blocking: Blocking = "none"
    needs_ordered_source: bool = False
    takes: frozenset[str] = frozenset()


DEFAULTS: Mapping[str, PolicyDefaults] = MappingProxyType(
    {
        # 1, 2, 4, 8, 16, 32, 64, 128, 256, 512 s, then 512 s each time; 176 retries, the last one
        # 86,015 s after the first failure: 385 s before a message of one day expires.
        "exponential_decay": PolicyDefaults(
            waits_ms=tuple(2**n * SECOND_MS for n in range(10)),
            retries=176,
            ending="expiry",
            blocking="probe",
        ),
        # Three times 10 to 20 s, uniform: the upper end, of which half is drawn.
        "backoff": PolicyDefaults(
            waits_ms=(20 * SECOND_MS,),
            jitter=0.5,
            retries=3,
            ending="dropped",
            blocking="in_order",
        ),
        # 10, 30 s, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30 min, 1, 2 h; 16 retries, the last one 4 h
        # 45 min 40 s after the first failure. A higher `max_retries` adds waits of 2 h.
        "unordered": PolicyDefaults(
            waits_ms=(
                10 * SECOND_MS,
                30 * SECOND_MS,
                *(n * MINUTE_MS for n in range(1, 11)),
                20 * MINUTE_MS,
                30 * MINUTE_MS,
                1 * HOUR_MS,
                2 * HOUR_MS,
            ),
            retries=16,
            takes=frozenset({"max_retries"}),
        ),
        # 1 s each time (`interval_seconds`), without end or up to `max_retries`.
        "ordered": PolicyDefaults(
            waits_ms=(1 * SECOND_MS,),
            retries=None,
            blocking="in_order",
            needs_ordered_source=True,
            takes=frozenset({"interval_seconds", "max_retries"}),
        ),
        # 1 min each time; 288 retries, the last one 4 h 48 min after the first failure.
        "http_ordered": PolicyDefaults(
            waits_ms=(60 * SECOND_MS,),
            retries=288,
            blocking="in_order",
            needs_ordered_source=True,
        ),
        # 5 min each time; 288 retries, the last one 24 h after the first failure.
        "http_unordered": PolicyDefaults(waits_ms=(300 * SECOND_MS,), retries=288),
        # Its waits and the number of retries are set by the `retry` object.
        "custom": PolicyDefaults(retries=0, takes=frozenset({"jitter", "waits"})),
    }
)
POLICIES = frozenset(DEFAULTS)
MEMBERS = frozenset({"policy"}).union(*(defaults.takes for defaults in DEFAULTS.values()))


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How one queue, receiver or subscription retries.

    Two policies are equal also if only one of them was given with its defaults written out.

    waits_ms: wait after the first delivery, the second, …; the last one repeats. jitter: the share
    of each wait that is drawn. max_retries: None means no end.
    """

    policy: str
    waits_ms: tuple[int, ...]
    jitter: float
    max_retries: int | None

    @property
    def ends(self) -> bool:
        """True if the retries can be used up."""
        return self.max_retries is not None

    @property
    def ending(self) -> Ending:
        """The end of a message whose retries are used up."""
        return DEFAULTS[self.policy].ending

    @property
    def blocking(self) -> Blocking:
        """The messages that a failing one holds back, if the policy has more than waits."""
        return DEFAULTS[self.policy].blocking

    def wait_ms(self, receive_count: int, draw: Callable[[], float]) -> int | None:
        """Returns the wait between the `receive_count`-th delivery (from 1) and the next one.

        For URLs it counts from the start of that delivery, elsewhere from the end of its lease,
        by a give-back or by time. draw: returns uniform numbers in [0, 1), called only if the
        policy has jitter. Returns None if the retries are used up.
        """
        if receive_count < 1:
            raise ValueError("deliveries are counted from 1")
        if self.max_retries is not None and receive_count > self.max_retries:
            return None
        wait_ms = self.waits_ms[min(receive_count, len(self.waits_ms)) - 1]
        if not self.jitter:
            return wait_ms
        return round(wait_ms * (1 - self.jitter * draw()))


def parse_retry(
    retry: Mapping[str, object] | None, *, ordered_source: bool, default: str | None = None
) -> RetryPolicy | None:
    """Returns the policy that a `retry` object describes; without one the `default`, or None.

    retry: `{"policy", "max_retries"?, "interval_seconds"?, "waits"?, "jitter"?}` or None.
    ordered_source: True if messages have groups whose order is kept.

    Raises `InvalidParameter`, on `retry` or on its member that is at fault.
    """
    if retry is None:
        return None if default is None else _policy({"policy": default})
    if not isinstance(retry, Mapping):
        raise InvalidParameter("retry", "must be an object or null")
    for name in retry:
        if name not in MEMBERS:
            raise InvalidParameter("retry", f"{name!a} is not a member of a retry policy")
    policy = retry.get("policy")
    if not isinstance(policy, str) or policy not in POLICIES:
        raise InvalidParameter("retry.policy", f"must be one of {', '.join(sorted(POLICIES))}")
    if DEFAULTS[policy].needs_ordered_source and not ordered_source:
        raise InvalidParameter("retry.policy", f"{policy} needs an ordered queue or subscription")
    return _policy(retry)


def _policy(retry: Mapping[str, object]) -> RetryPolicy:
    """Returns the policy of a `retry` object whose policy is known to be one."""
    name = str(retry["policy"])
    defaults = DEFAULTS[name]
    for member in retry:
        if member != "policy" and member not in defaults.takes:
            raise InvalidParameter(f"retry.{member}", f"is not allowed with the policy {name}")
    waits_ms, jitter, max_retries = defaults.waits_ms, defaults.jitter, defaults.retries
    if "waits" in defaults.takes:
        waits_ms = _waits_ms(retry.get("waits"), "retry.waits")
        max_retries = len(waits_ms)
    if "interval_seconds" in retry:
        at = "retry.interval_seconds"
        waits_ms = (_ms(retry["interval_seconds"], INTERVAL_SECONDS_RANGE, at),)
    if "jitter" in retry:
        jitter = _number(retry["jitter"], JITTER_RANGE, "retry.jitter")
    if "max_retries" in retry:
        max_retries = _integer(retry["max_retries"], MAX_RETRIES_RANGE, "retry.max_retries")
    return RetryPolicy(policy=name, waits_ms=waits_ms, jitter=jitter, max_retries=max_retries)


def _waits_ms(waits: object, parameter: str) -> tuple[int, ...]:
    low, high = WAIT_COUNT_RANGE
    if not isinstance(waits, list | tuple) or not low <= len(waits) <= high:
        raise InvalidParameter(parameter, f"must be a list of {low} to {high} waits in seconds")
    return tuple(
        _ms(wait, WAIT_SECONDS_RANGE, f"{parameter}[{index}]") for index, wait in enumerate(waits)
    )


def _ms(seconds: object, limits: tuple[float, float], parameter: str) -> int:
    return round(_number(seconds, limits, parameter) * SECOND_MS)


def _number(value: object, limits: tuple[float, float], parameter: str) -> float:
    """Returns a finite number within the limits, both included."""
    low, high = limits
    # A boolean is an int to Python; NaN is within no limits.
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidParameter(parameter, f"must be a number from {low} to {high:,}")
    return value


def _integer(value: object, limits: tuple[int, int], parameter: str) -> int:
    low, high = limits
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidParameter(parameter, f"must be an integer from {low} to {high:,}")
    return value
