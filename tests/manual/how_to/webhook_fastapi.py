"""Posts of the service, received in FastAPI."""

from __future__ import annotations

import json
import os

from fastapi import FastAPI, Request, Response
from verify import is_genuine

app = FastAPI()
secret = os.environ["WEBHOOK_SECRET"]
seen: set[str] = set()


@app.post("/hook")
async def receive(request: Request) -> Response:
    body = await request.body()
    if not is_genuine(secret, request.headers, body):
        return Response(status_code=401)
    if request.headers["webhook-id"] not in seen:  # the same in every retry
        print(f"received {json.loads(body)['msgBody']}", flush=True)
        seen.add(request.headers["webhook-id"])
    return Response(status_code=204)
