"""The function that queues of a run name: it asks the run what becomes of each message.

    cirrusmq up --function verify=cirrusmq_local.verifying.function:handle

Each body has a label and the URL of the run's listener. Without an answer it fails, as a function
does whose database is gone.
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any

NAME = "verify"
GIVEN = f"{NAME}={__name__}:handle"
"""For `cirrusmq up --function`."""
_HERE = "http://127.0.0.1:"
_SECONDS = 20


def handle(event: dict[str, Any], context: object) -> Any:
    """Give a batch to the listener, and return its answer. Raises OSError if nobody answers."""
    url = event["Records"][0]["body"].partition(" ")[2]
    if not url.startswith(_HERE):
        raise ValueError("its messages are not of a run on this machine")
    # No proxy of the environment is between two processes of one machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, json.dumps(event).encode(), _SECONDS) as answer:
        return json.load(answer)
