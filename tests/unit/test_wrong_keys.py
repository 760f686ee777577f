"""What a flood of wrong keys costs by the manual, added up from the prices."""

from __future__ import annotations

from pathlib import Path

from bench.counted.cost import SEND_MS
from bench.counted.months import ACCESS_BYTES
from cirrusmq_local.commands import prices, quotas

PAGE = (Path(__file__).parents[2] / "infra/manual/access.md").read_text()
AUDIT_LINE_BYTES = 300
LOG_GB = 0.50
DAY = 86_400


def by_line(*, api: bool) -> tuple[float, float, float, float]:
    """Of a million: the API's price, the function's, reading a key, lines of logs."""
    seconds = SEND_MS / 1_000 * prices.HOT_GB
    function = prices.LAMBDA_REQUESTS_PER_MILLION + seconds * prices.LAMBDA_GB_SECOND * 1e6
    logged = AUDIT_LINE_BYTES + (ACCESS_BYTES["short"] if api else 0)
    read = 0.5 * prices.READ_UNITS_PER_MILLION
    return (prices.HTTP_API_PER_MILLION if api else 0.0, function, read, logged / 1e3 * LOG_GB)


def test_a_million_and_a_day_of_them_by_the_api() -> None:
    call, function, read, logged = by_line(api=True)
    whole = call + function + read + logged
    a_day = whole * 2_000 * DAY / 1e6
    row = (
        f"| the API | ${call:.2f} | ${function:.2f} | ${read:.2f} | ${logged:.2f} | ${whole:.2f}"
        f" | ${a_day:.0f}, by `RequestsPerSecond=2000` |"
    )
    assert row in PAGE


def test_a_million_and_a_day_of_them_by_direct_urls() -> None:
    _, function, read, logged = by_line(api=False)
    whole = function + read + logged
    a_second = quotas.CONCURRENCY.default * quotas.CALLS_A_UNIT
    a_day = whole * a_second * DAY / 1e6
    row = (
        f"| direct URLs | none | ${function:.2f} | ${read:.2f} | ${logged:.2f} | ${whole:.2f}"
        f" | ${a_day:.0f}, by a quota of 1,000 executions, ten calls a second each |"
    )
    assert row in PAGE
    bounded = whole * 4 * 50 * quotas.CALLS_A_UNIT * DAY / 1e6
    assert f"2,000 calls a second of four functions are ${bounded:.0f} a\nday" in PAGE
