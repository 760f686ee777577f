"""Refusing calls of an account that makes too many, without a write for each call.

Every execution environment counts each account's calls by itself. At its first call of a second
it adds its count of the second before to a counter that all environments share, is answered the
count of all of them so far, and takes a share of the rate as large as its part of the calls:

    second           10                 11                        12
    environment A    40 calls           add 40 ──> 40 in all      add 40 ──> 120 and 40: 33 %
    environment B    80 calls           add 80 ──> 120 in all     add 80 ──> 120 and 120: 67 %

So the limit is approximate. Calls in an environment's first second, and those of a growing load
within about two seconds, are let through on top; no environment by itself lets more through than
the whole rate. The second in which a minute begins knows only the calls counted in it so far, and
may let more through as well. Refused calls count, so an account that continues is held at its rate.

It costs, while an account calls, one write unit a second for each environment that it reaches, and
those calls wait for the write. A throttled counter means some 1,000 environments: each lets at most
a thousandth of the rate through. After another failure the last share holds for 10 seconds, then
the whole rate. Without a rate nothing is counted and nothing is written.
"""

from __future__ import annotations

from cirrusmq.base.errors import Throttled
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import key, was_throttled
from cirrusmq.runtime.throttle import Count, share_of

_KEPT_SECONDS = 120


def admit(core: Core, account: str) -> None:
    """Count a call of the account; Throttled where it makes more than its rate."""
    rate = core.settings.account_requests_per_second
    if not rate:
        return
    ended = core.throttle.turn(account, core.now_ms() // 1000, rate)
    if ended is not None:
        _take_share(core, account, ended, rate)
    if not core.throttle.take(account):
        raise Throttled(f"account {account} makes more than {rate:,} calls a second")


def counter_place(account: str, second: int) -> tuple[str, str]:
    """Key in the Usage table of an account's calls in the minute of that second."""
    return f"T#{account}", str(second // 60)


def _take_share(core: Core, account: str, ended: Count, rate: int) -> None:
    chance = core.random.random()
    try:
        demand = _report(core, account, ended)
    except Exception as error:  # a call never fails because its counter does
        if was_throttled(error):
            core.throttle.refused(account, rate, chance)
        else:
            core.throttle.failed(account, rate)
        return
    core.throttle.set_share(account, share_of(rate, ended.calls, demand, chance))


def _report(core: Core, account: str, ended: Count) -> int:
    """Add a count to those of the other environments; answers the calls a second of all."""
    name = str(ended.second % 60)
    request = {
        "TableName": core.tables.usage,
        "Key": key(*counter_place(account, ended.second)),
        "UpdateExpression": "ADD #second :calls SET #expires = :expires",
        "ExpressionAttributeNames": {"#second": name, "#expires": "expires_at"},
        "ExpressionAttributeValues": {
            ":calls": {"N": str(ended.calls)},
            ":expires": {"N": str(ended.second + _KEPT_SECONDS)},
        },
        "ReturnValues": "ALL_NEW",
    }
    counted = core.store.write("UpdateItem", request) or {}
    # Some environments have not reported the last second yet; the one before is complete.
    seconds = (name, str(ended.second % 60 - 1))
    return max(int(counted.get(each, {"N": "0"})["N"]) for each in seconds)
