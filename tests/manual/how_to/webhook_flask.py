"""Posts of the service, received in Flask."""

from __future__ import annotations

import json
import os

from flask import Flask, request
from verify import is_genuine

app = Flask(__name__)
secret = os.environ["WEBHOOK_SECRET"]
seen: set[str] = set()


@app.post("/hook")
def receive() -> tuple[str, int]:
    headers = {name.lower(): value for name, value in request.headers.items()}
    if not is_genuine(secret, headers, request.get_data()):
        return "", 401
    if headers["webhook-id"] not in seen:  # the same in every retry
        print(f"received {json.loads(request.get_data())['msgBody']}", flush=True)
        seen.add(headers["webhook-id"])
    return "", 204
