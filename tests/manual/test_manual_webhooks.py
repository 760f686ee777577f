"""What the manual shows for verifying a post takes the service's own, and nothing else."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.manual.webhooks.verify import is_genuine
from tests.unit.topics import subscription

from cirrusmq.model.message import Message
from cirrusmq.webhooks import requests

HERE = Path(__file__).with_name("webhooks")
SECRET, OTHER = ("whsec_" + base64.b64encode(bytes([n]) * 24).decode() for n in (1, 2))
PROGRAMS = {
    "node": ["node", "verify.mjs"],
    "go": ["go", "run", "verify.go"],
    "php": ["php", "verify.php"],
}


def post(secrets: list[str], *, seconds_ago: int = 0) -> tuple[dict[str, str], bytes]:
    """The headers, in lower case, and the body of a post as the service makes it."""
    headers, body = requests.delivery(
        subscription("http", name="web"),
        "Msg-01M7XV36R3RBNQ643TZT3ZMKWA0",
        Message(body="the cellar is wet: 水"),
        published_ms=1_795_000_000_000,
        secrets=secrets,
        request_id="1",
        now_s=int(time.time()) - seconds_ago,
    )
    return {name.lower(): value for name, value in headers.items()}, body


def cases() -> list[tuple[str, Mapping[str, str], bytes, bool]]:
    """(secret, headers, body, whether they are genuine)."""
    headers, body = post([SECRET])
    both, its_body = post([OTHER, SECRET])
    old, old_body = post([SECRET], seconds_ago=3_600)
    signature = headers["webhook-signature"]
    return [
        (SECRET, headers, body, True),
        (SECRET, both, its_body, True),
        (SECRET, headers, body + b" ", False),
        (OTHER, headers, body, False),
        (SECRET, headers | {"webhook-id": "Msg-2"}, body, False),
        (SECRET, headers | {"webhook-timestamp": "soon"}, body, False),
        (SECRET, headers | {"webhook-signature": signature[:-4] + "AAA="}, body, False),
        (SECRET, headers | {"webhook-signature": ""}, body, False),
        (SECRET, headers | {"webhook-signature": "v1,é"}, body, False),
        *(
            (SECRET, {name: headers[name] for name in headers if name != missing}, body, False)
            for missing in ("webhook-id", "webhook-timestamp", "webhook-signature")
        ),
        (SECRET, old, old_body, False),
    ]


def test_python_takes_genuine_requests() -> None:
    for secret, headers, body, wanted in cases():
        assert is_genuine(secret, headers, body) == wanted


@pytest.mark.parametrize("language", PROGRAMS)
def test_other_languages_take_genuine_requests(language: str) -> None:
    name, *arguments = PROGRAMS[language]
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not on this machine")
    given = [
        {"secret": secret, "headers": dict(headers), "body": base64.b64encode(body).decode()}
        for secret, headers, body, _ in cases()
    ]
    run = subprocess.run(
        [program, *arguments],
        input="".join(json.dumps(each) + "\n" for each in given),
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=120,
    )
    wanted = ["true" if wanted else "false" for *_, wanted in cases()]
    assert run.stdout.split() == wanted, run.stderr
