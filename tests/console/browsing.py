"""A real browser for the console's tests: Chromium on the path, else the one of a package."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / ".node/console"
"""Made by `make tools` from `node/package-lock.json`."""
ARGUMENTS = (
    *("--no-sandbox", "--disable-setuid-sandbox", "--no-zygote", "--font-render-hinting=none"),
    # A model of a graphics card would draw what moves at ten times the cost.
    "--disable-gpu",
)
PATIENCE_MS = 60_000
"""For what a busy machine takes; a test that passes does not wait for it."""
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_AXE = PACKAGES / "node_modules/axe-core/axe.min.js"
_RUN_AXE = """rules => axe.run(document, rules.length ? {runOnly: rules} : {}).then(
    found => found.violations.map(each => [each.id, each.nodes.map(node => node.html)]))"""


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser; the test is skipped where there is no way to get one, and fails elsewhere."""
    path = _find()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        expect.set_options(timeout=PATIENCE_MS)
        yield browser
        browser.close()


def _find() -> str:
    on_path = next(filter(None, map(shutil.which, _NAMES)), None)
    if on_path is not None:
        return on_path
    node = shutil.which("node")
    if node is None or not (PACKAGES / "node_modules").is_dir():
        pytest.skip("Chromium is not on the path, and npm did not fetch one (make tools)")
    # The package unpacks it into one place for all processes, which stays for the next run.
    with (PACKAGES / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = subprocess.run(
            [node, "browser.mjs"],
            cwd=PACKAGES,
            env=os.environ | {"TMPDIR": str(PACKAGES)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def axe_findings(page: Page, *rules: str) -> list[Any]:
    """What axe finds on a page, by all of its rules or some of them."""
    # A page may forbid scripts in it, so that axe comes in beside them.
    if page.evaluate("!window.axe"):
        page.evaluate(_AXE.read_text("utf-8"))
    found: list[Any] = page.evaluate(_RUN_AXE, list(rules))
    return found


class Console:
    """The console in a tab of its own; `problems`: what went wrong in the page itself."""

    def __init__(self, browser: Browser, url: str, key: dict[str, Any] | None, **options: Any):
        self.url = url
        self.problems: list[str] = []
        chosen = {"locale": "en-GB", "viewport": {"width": 1280, "height": 800}} | options
        self._context = browser.new_context(**chosen)
        self._context.set_default_timeout(PATIENCE_MS)
        self.page: Page = self._context.new_page()
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._note)
        self.page.on("request", self._check)
        self.page.goto(f"{url}/console/")
        if key is not None:
            self.sign_in(key["access_key_id"], key["secret"])
            expect(self.page.get_by_role("button", name="Sign out")).to_be_visible()

    def sign_in(self, id: str, secret: str) -> None:
        """Fill the form and send it."""
        self.page.get_by_label("Access key id").fill(id)
        self.page.get_by_label("Secret").fill(secret)
        self.page.get_by_role("button", name="Sign in").click()

    def show(self, place: str) -> Page:
        """Go to a page, such as `queues/orders/send`, and wait until it is drawn."""
        self.page.goto(f"{self.url}/console/#/{place}")
        expect(self.page.locator(".loading, .skeleton")).to_have_count(0)
        return self.page

    def section(self, heading: str) -> Locator:
        """The section of the page that has this heading."""
        named = self.page.get_by_role("heading", name=heading, exact=True)
        return self.page.locator("section").filter(has=named)

    def press(self, name: str, *, dialog: bool = False) -> None:
        """Click a button of the page, or of the dialog over it."""
        within = self.page.get_by_role("dialog") if dialog else self.page.get_by_role("main")
        within.get_by_role("button", name=name, exact=True).click()

    def findings(self, *rules: str) -> list[Any]:
        """What axe finds on the page, by all of its rules or some of them."""
        return axe_findings(self.page, *rules)

    def close(self) -> None:
        """Close the tab; nothing went wrong in it."""
        self._context.close()
        assert not self.problems, self.problems

    def _note(self, message: Any) -> None:
        # Chromium notes every answer from 400 on; those are looked at by the tests.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(message.text)

    def _check(self, request: Any) -> None:
        if not request.url.startswith((f"{self.url}/", "data:")):
            self.problems.append(f"another host is asked: {request.url}")
