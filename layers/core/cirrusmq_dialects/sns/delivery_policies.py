"""Delivery policies: how often and when a URL is tried again, in SNS's form and in the core's.

numRetries 6, of them numNoDelayRetries 1, numMinDelayRetries 1, numMaxDelayRetries 1
minDelayTarget 10, maxDelayTarget 100, backoffFunction linear

waits    0.01 s    10 s    10 s  55 s  100 s    100 s
         no delay  min     by the function      max
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from cirrusmq.base.limits import POSTS_PER_SECOND
from cirrusmq.base.shapes import convert, decode_json
from cirrusmq_dialects.sns.errors import invalid

DELIVERY_POLICY = "DeliveryPolicy"
POLICY_BYTES = 8_192
_NO_DELAY_SECONDS = 0.01
_CONTENT_TYPES = ("text/plain", "text/plain; charset=UTF-8")
_Count = Annotated[int, Meta(ge=0, le=100)]
_Delay = Annotated[int, Meta(ge=1, le=3_600)]
_BACKOFF: Mapping[str, Callable[[float, float, float, int], float]] = {
    "linear": lambda low, high, share, _: low + (high - low) * share,
    "arithmetic": lambda low, high, share, _: low + (high - low) * share * (1 + share) / 2,
    "geometric": lambda low, high, share, _: low * (high / low) ** share,
    "exponential": lambda low, high, share, steps: (
        low + (high - low) * (2 ** (share * steps) - 1) / (2**steps - 1 if steps else 1)
    ),
}
"""From the least and the greatest wait, the share of the way (0 to 1) and the number of steps."""


class _Retry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    num_retries: _Count = 3
    num_no_delay_retries: _Count = 0
    num_min_delay_retries: _Count = 0
    num_max_delay_retries: _Count = 0
    min_delay_target: _Delay = 20
    max_delay_target: _Delay = 20
    backoff_function: str = "linear"


class _Throttle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    max_receives_per_second: Annotated[int, Meta(ge=1)] | None = None


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    header_content_type: str | None = None


class _OfSubscription(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    healthy_retry_policy: _Retry | None = None
    sickly_retry_policy: _Retry | None = None
    throttle_policy: _Throttle | None = None
    request_policy: _Request | None = None
    guaranteed: bool = False


class _Defaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    default_healthy_retry_policy: _Retry | None = None
    default_sickly_retry_policy: _Retry | None = None
    default_throttle_policy: _Throttle | None = None
    default_request_policy: _Request | None = None
    disable_subscription_overrides: bool = False


class _OfTopic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    http: _Defaults = _Defaults()


def read_of_subscription(text: str) -> dict[str, Any]:
    """Returns `retry` and `rate` of a subscription with this policy, or defaults for an empty text.

    Raises SnsError if it is no policy, or beyond a limit.
    """
    given = _read(text, _OfSubscription) if text else _OfSubscription()
    return _native(given.healthy_retry_policy, given.throttle_policy, given.request_policy)


def read_of_topic(text: str) -> dict[str, Any]:
    """As `read_of_subscription`, of the policy of a topic: for URLs without a policy."""
    given = (_read(text, _OfTopic) if text else _OfTopic()).http
    return _native(
        given.default_healthy_retry_policy,
        given.default_throttle_policy,
        given.default_request_policy,
    )


def _native(
    retry: _Retry | None, throttle: _Throttle | None, request: _Request | None
) -> dict[str, Any]:
    content_type = request.header_content_type if request else None
    if content_type is not None and content_type not in _CONTENT_TYPES:
        raise _wrong(f"headerContentType can be {_CONTENT_TYPES[0]} alone here")
    rate = throttle.max_receives_per_second if throttle else None
    return {
        "retry": None if retry is None else _retry(retry),
        "rate": None if rate is None else min(rate, POSTS_PER_SECOND[1]),
    }


def _retry(policy: _Retry) -> dict[str, Any]:
    low, high, count = policy.min_delay_target, policy.max_delay_target, policy.num_retries
    if low > high:
        raise _wrong("minDelayTarget must not be above maxDelayTarget")
    backoff = _BACKOFF.get(policy.backoff_function)
    if backoff is None:
        raise _wrong(f"backoffFunction must be one of {', '.join(_BACKOFF)}")
    fixed = policy.num_no_delay_retries + policy.num_min_delay_retries
    between = count - fixed - policy.num_max_delay_retries
    if between < 0:
        raise _wrong("numRetries must not be below the sum of the retries of each phase")
    if not count:
        return {"policy": "unordered", "max_retries": 0}
    steps = max(between - 1, 0)
    waits = [_NO_DELAY_SECONDS] * policy.num_no_delay_retries
    waits += [float(low)] * policy.num_min_delay_retries
    waits += [
        round(backoff(low, high, step / steps if steps else 0, steps), 3) for step in range(between)
    ]
    waits += [float(high)] * policy.num_max_delay_retries
    return {"policy": "custom", "waits": waits}


def _read(text: str, kind: type[Any]) -> Any:
    if len(text.encode()) > POLICY_BYTES:
        raise _wrong(f"has more than {POLICY_BYTES:,} bytes")
    try:
        return convert(decode_json(text, dict[str, Any]), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _wrong(str(error)[:200]) from error


def _wrong(reason: str) -> Exception:
    return invalid(f"{DELIVERY_POLICY} Reason: {reason}.")
