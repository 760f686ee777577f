"""Refusing calls of an account that makes too many, without a write for each call.

Every execution environment counts each account's calls separately. Once in `interval` seconds it
adds its count to a counter that all environments share, is answered the count of all of them so
far, and takes a share of the rate as large as its part of the calls:

    second           10                 11                        12
    environment A    40 calls           add 40 ──> 40 in all      add 40 ──> 120 and 40: 33 %
    environment B    80 calls           add 80 ──> 120 in all     add 80 ──> 120 and 120: 67 %

The interval is a second, and longer if the counter shows over 400 reports a second: 2, 4 or 8
seconds, drawn from 1 to twice that, for a partition key takes 1,000 writes a second.

So the limit is approximate. Calls in an environment's first second, and calls of a growing load
within about two intervals, are let through on top; no single environment lets more through than the
whole rate. Refused calls count, so an account that continues is held at its rate.

It costs one write unit for each report, and that call waits for the write. A throttled counter
means some 1,000 other reports: each environment lets at most a thousandth of the rate through, and
reports later. After another failure the last share holds for 10 seconds, then the whole rate.
Without a rate nothing is counted and nothing is written.

A publish counts a call more for ten of its copies, when it is stored. They are owed: until the rate
has worked them off the account's calls wait, and reports have the owed calls beside the made ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from cirrusmq.access.throttle import Count, Throttle, fair_share, next_interval
from cirrusmq.base.errors import Throttled
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, set_request, was_throttled

COPIES_A_CALL = 10
"""Copies of a published message that count as one call."""
_MAX_OWED_SECONDS = 60
_KEPT_SECONDS = 120
_MINUTE = 60
_REPORTS = "r"
"""Before the number of a second: how many reports were made in it."""


def admit(core: Core, account: str) -> None:
    """Counts a call of the account. Raises Throttled if it makes more than its rate."""
    rate = core.settings.account_requests_per_second
    if not rate:
        return
    throttle = core.memory(Throttle)
    count = throttle.turn(account, core.now_ms() // 1000, rate, core.random.random)
    if count is not None:
        _take_share(core, account, count, rate)
    if not throttle.take(account):
        raise Throttled(f"account {account} makes more than {rate:,} calls a second")


def count_copies(core: Core, account: str, copies: int) -> None:
    """Counts the copies of a publish: ten copies are a call.

    They are a debt, since the publish is stored by now: calls wait until the rate has worked it
    off. It is in the counts that environments report, so that all of them bear it.
    """
    rate = core.settings.account_requests_per_second
    if rate and copies:
        core.memory(Throttle).owe(account, copies / COPIES_A_CALL, rate * _MAX_OWED_SECONDS)


def counter_key(account: str, second: int) -> tuple[str, str]:
    """Key in the Usage table of an account's calls in the minute of that second."""
    return f"T#{account}", str(second // _MINUTE)


def _take_share(core: Core, account: str, count: Count, rate: int) -> None:
    chance = core.random.random()
    throttle = core.memory(Throttle)
    try:
        counted = _report(core, account, count)
    except Exception as error:  # a call never fails because its counter does
        if was_throttled(error):
            throttle.refused(account, count, rate, chance)
        else:
            throttle.failed(account, rate)
        return
    demand = _demand(counted, count)
    share = fair_share(rate, count.calls_per_second, demand)
    interval = _interval(counted, count)
    throttle.reported(account, share, demand, interval, chance)


def _report(core: Core, account: str, count: Count) -> Item:
    """Adds a count to the other environments' counts. Returns the counter of this minute."""
    second = str(count.second % _MINUTE)
    place, steps = counter_key(account, count.second), {second: count.calls, _REPORTS + second: 1}
    expires: Item = {"expires_at": {"N": str(count.second + _KEPT_SECONDS)}}
    request = set_request(core.tables.usage, place, expires, steps) | {"ReturnValues": "ALL_NEW"}
    return core.store.write("UpdateItem", request) or {}


def _demand(counted: Item, count: Count) -> float:
    """Returns calls a second of all environments, by the reports of two intervals, or of one second
    if that is the interval.

    Some environments have not reported the last second yet; without it all is complete. In the
    first seconds of a minute the last demand stands for what the counter does not have:

        counter    … 58 59 │ 0 1 2 3          interval 4, at second 3: [0 1 2 3] and, for
        needed     ─ ─ ─ ─ ─ ─ ─ ─ ─          [55 to 59], the demand of the last report
    """
    last = count.second % _MINUTE
    length = 1 if count.interval == 1 else 2 * count.interval
    windows = (range(end - length + 1, end + 1) for end in (last, last - 1))
    return max(_per_second(counted, "", window, count.demand) for window in windows)


def _interval(counted: Item, count: Count) -> int:
    """Returns the next interval, by the reports of two. A young counter shortens none."""
    last, interval = count.second % _MINUTE, count.interval
    window = range(last - 2 * interval + 1, last + 1)
    if window.start < 0:
        reports = _per_second(counted, _REPORTS, range(last + 1), None)
        return max(interval, next_interval(interval, reports))
    return next_interval(interval, _per_second(counted, _REPORTS, window, None))


def _per_second(counted: Item, name: str, seconds: Iterable[int], before: float | None) -> float:
    """Returns the mean of a counter's seconds; `before`: the mean of seconds outside its minute."""
    wanted = list(seconds)
    own = [each for each in wanted if each >= 0]
    total = float(sum(int(counted.get(f"{name}{each}", {"N": "0"})["N"]) for each in own))
    if before is None:
        return total / len(own) if own else 0.0
    return (total + before * (len(wanted) - len(own))) / len(wanted)
