"""Messages a second, from what the service counted between two reads of a page."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.console.browsing import Console
from tests.console.conftest import Open
from tests.console.test_accessible import ON_A_PHONE
from tests.console.test_queues import receive, send
from tests.stack import Stack

STEP = 300_000
GAP = 15_000
OF_GROUP = ["Delivered", "Received", "Deleted"]
FIRST = "The first rate comes with the next read."
HIDE = """hidden => {
    Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
}"""
SAMPLES = """([readings, gap]) => import(`${location.origin}/console/rate_samples.js`).then(
    ({NO_SAMPLES, withReading}) => readings.reduce(
        (held, reading) => withReading(held, reading, gap), NO_SAMPLES).samples)"""
LINE = """([samples, from]) => import(`${location.origin}/console/rate_samples.js`).then(
    ({lineOf, meanOf}) => [lineOf(samples, 'sent', from), meanOf(samples, 'sent', from)])"""


def reading(at: int, *sent: int, first: int = 0) -> dict[str, Any]:
    return {"at": at, "first": first, "step": STEP, "numbers": {"sent": sent}}


def sampled(page: Page, *readings: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(SAMPLES, [readings, GAP])
    return found


def sample(at: int, seconds: float, sent: int | None) -> dict[str, Any]:
    return {
        "at": at, "seconds": seconds, "happened": None if sent is None else {"sent": sent},
    }  # fmt: skip


@pytest.fixture(scope="module")
def module_page(browser: Browser, shared_stack: Stack) -> Iterator[Page]:
    """A page that imports the module of samples, which needs no key."""
    console = Console(browser, shared_stack.url, None)
    yield console.page
    console.close()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("later", "sent"),
    [
        pytest.param(reading(5_000, 7, 4), 1, id="the last interval still runs"),
        pytest.param(reading(5_000, 8, 3), 1, id="what is late is in an interval before"),
        pytest.param(reading(5_000, 3, 2, first=STEP), 2, id="the first fell out, one began"),
        pytest.param(reading(5_000, 3, 0, first=STEP), 0, id="the first fell out, nothing came"),
        pytest.param(reading(5_000, 0, 2, first=5 * STEP), 2, id="nothing is in both"),
        pytest.param(reading(5_000, 7, 1), 0, id="some were taken back"),
        pytest.param(reading(5_000, 6, 5), 1, id="one was taken back, others came"),
        pytest.param(reading(5_000, 99, 9, first=-STEP), 2, id="by a clock that is behind"),
    ],
)
def test_a_difference_between_two_reads_is_never_negative(
    module_page: Page, later: dict[str, Any], sent: int
) -> None:
    assert sampled(module_page, reading(0, 7, 3), later) == [sample(5_000, 5, sent)]


@pytest.mark.long
def test_a_hidden_page_has_a_gap_and_goes_on_behind_it(module_page: Page) -> None:
    reads = [reading(0, 1), reading(5_000, 11), reading(65_000, 999), reading(70_000, 1_004)]
    samples = sampled(module_page, *reads)
    assert samples == [sample(5_000, 5, 10), sample(65_000, 60, None), sample(70_000, 5, 5)]
    line, mean = module_page.evaluate(LINE, [samples, 0])
    assert (line, mean) == ([[5_000, 2], [65_000, None], [70_000, 1]], 1.5)
    assert module_page.evaluate(LINE, [samples, 65_000]) == [[[65_000, None], [70_000, 1]], 1]
    assert module_page.evaluate(LINE, [samples, 80_000]) == [[], None]


@pytest.mark.long
def test_samples_are_at_most_sixty_and_no_clock_makes_them_run_backwards(module_page: Page) -> None:
    reads = [reading(5_000 * number, number) for number in range(100)]
    samples = sampled(module_page, *reads)
    assert len(samples) == 60
    assert (samples[0]["at"], samples[-1]["at"]) == (200_000, 495_000)
    late = sampled(module_page, *reads, reading(494_000, 0))
    assert late == samples
    set_back = sampled(module_page, *reads, reading(1_000, 50), reading(6_000, 60))
    assert set_back == [sample(6_000, 5, 10)]


def seconds_of(page: Page) -> Locator:
    heading = page.get_by_role("heading", name="Messages a second")
    return page.locator("section").filter(has=heading)


def rates(page: Page) -> dict[str, tuple[float, float]]:
    """What the chart says in words: the mean of the last minute, and the most, by line."""
    label = seconds_of(page).get_by_role("img").get_attribute("aria-label")
    assert label is not None
    found = re.findall(r"(\w+) ([\d.]+), at most ([\d.]+)", label)
    return {what: (float(mean), float(limit)) for what, mean, limit in found}


def wait_until_counted(service: httpx.Client, rate_call: str) -> None:
    """A post is made by itself, in a moment, and counted by the next run of the meter."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert service.post("/local/run/meter").is_success
        (rates,) = service.get(rate_call).json()["rates"]
        if any(map(any, (rates["published"], rates["delivered"], rates["attempts"]))):
            return
        time.sleep(0.2)
    raise AssertionError("nothing was counted")


def read_again(page: Page, path: str, seconds: int = 5) -> None:
    """Let the page read its figures once more."""
    with page.expect_response(lambda answer: answer.url.endswith(path)):
        page.clock.run_for(seconds * 1_000 + 100)


@pytest.mark.long
def test_a_queues_chart_follows_sends_receives_and_deletes(
    console: Console, service: httpx.Client, queue: str
) -> None:
    page = console.page
    page.clock.install()
    console.show(f"queues/{queue}")
    expect(seconds_of(page)).to_contain_text(FIRST)
    expect(seconds_of(page)).to_contain_text("read every 5 s: half a read unit a source")
    rate_call = f"/rates?queues={queue}"
    read_again(page, rate_call)
    chart = seconds_of(page).get_by_role("img")
    still = "Sent 0, at most 0; Received 0, at most 0; Deleted 0, at most 0"
    expect(chart).to_have_attribute("aria-label", re.compile(f": {still}$"))

    send(service, queue, *({"body": str(number)} for number in range(12)))
    receipts = [message["receipt"] for message in receive(service, queue)][:3]
    assert service.post(f"/queues/{queue}/messages/delete", json={"receipts": receipts}).is_success
    assert service.post("/local/run/meter").is_success
    read_again(page, rate_call)
    expect(chart).not_to_have_attribute("aria-label", re.compile(f": {still}$"))
    found = rates(page)
    assert found["Sent"][1] > found["Received"][0] > 0
    # All of them came between the same two reads.
    assert found["Sent"][1] / found["Deleted"][1] == pytest.approx(4, rel=0.05)
    assert found["Sent"][0] < found["Sent"][1]
    expect(chart.locator("polyline")).to_have_count(3)

    page.evaluate(HIDE, True)
    send(service, queue, *({"body": "x"} for _ in range(16)))
    assert service.post("/local/run/meter").is_success
    page.clock.run_for(60_000)
    page.evaluate(HIDE, False)
    read_again(page, rate_call)
    # Neither the sixteen of the time that nobody saw, nor a line across it.
    expect(chart.locator("circle")).to_have_count(3)
    assert rates(page)["Sent"][1] == found["Sent"][1]


@pytest.mark.long
@pytest.mark.parametrize(
    ("place", "query", "lines", "seconds"),
    [
        ("topics/{}", "topics={}", ["Published"], 10),
        ("subscriptions/{}/group", "subscriptions={}%2Fgroup", OF_GROUP, 5),
        ("subscriptions/{}/printer", "subscriptions={}%2Fprinter", ["Delivered", "Posts"], 5),
    ],
)
def test_topics_and_subscriptions_have_one_on_a_phone_at_night_too(
    open_console: Open,
    service: httpx.Client,
    name: str,
    place: str,
    query: str,
    lines: list[str],
    seconds: int,
) -> None:
    topic = f"/topics/{name}"
    service.put(topic)
    service.put(f"{topic}/subscriptions/group", json={"protocol": "pull"})
    printer = {"protocol": "http", "endpoint": "http://127.0.0.1:9/"}
    service.put(f"{topic}/subscriptions/printer", json=printer)
    console = open_console(**ON_A_PHONE)
    page = console.page
    page.clock.install()
    console.show(place.format(name))
    expect(seconds_of(page)).to_contain_text(FIRST)
    assert service.post(f"{topic}/messages", json={"messages": [{"body": "x"}] * 8}).is_success
    group = f"{topic}/subscriptions/group/messages/receive"
    assert service.post(group, json={"wait_seconds": 20}).json()["messages"]
    rate_call = f"/rates?{query.format(name)}"
    wait_until_counted(service, rate_call)
    read_again(page, rate_call, seconds)
    chart = seconds_of(page).get_by_role("img")
    expect(chart).to_have_attribute("aria-label", re.compile(r"at most (0\.|[1-9])"))
    assert list(rates(page)) == lines
    expect(seconds_of(page)).to_contain_text(f"read every {seconds} s")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert console.findings() == []
    page.emulate_media(color_scheme="light")
    assert console.findings("color-contrast") == []


@pytest.mark.long
def test_samples_outlive_another_page_and_are_forgotten_with_the_key(
    console: Console, shared_stack: Stack, queue: str
) -> None:
    page = console.page
    page.clock.install()
    console.show(f"queues/{queue}")
    read_again(page, f"/rates?queues={queue}")
    chart = seconds_of(page).get_by_role("img")
    expect(chart).to_be_visible()
    console.show(f"queues/{queue}/send")
    console.show(f"queues/{queue}")
    expect(chart).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    key = shared_stack.connection()
    console.sign_in(key["access_key_id"], key["secret"])
    expect(seconds_of(page)).to_contain_text(FIRST)
