"""The certificate of the manual: it is signed, and the page has its numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cirrusmq_local.verifying import signing
from cirrusmq_local.verifying.promises import PROMISES

MANUAL = Path(__file__).parents[2] / "infra/manual"
CERTIFICATE: dict[str, Any] = json.loads((MANUAL / "certificate.json").read_text())
PAGE = (MANUAL / "verify.md").read_text()


def test_it_is_signed_by_the_key_on_the_page() -> None:
    assert f"signed by the key {signing.check(CERTIFICATE)};" in PAGE


def test_the_page_has_every_promise_with_its_verdict() -> None:
    rows = [
        f"| `{each['id']}` | {each['verdict']} | {each['beyond_doubt'] or ''} |"
        for each in CERTIFICATE["promises"]
    ]

    assert "\n".join(rows) in PAGE
    assert [each["id"] for each in CERTIFICATE["promises"]] == [*PROMISES]
    assert CERTIFICATE["violations"] == []


def test_the_page_has_its_counts() -> None:
    for name, count in CERTIFICATE["messages"].items():
        assert f"| {name} | {count} |" in PAGE
    assert f"commit {CERTIFICATE['service']['commit'][:12]}" in PAGE
    assert CERTIFICATE["history_sha256"] in PAGE
