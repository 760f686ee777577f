"""What tests of listings share."""

from __future__ import annotations

from typing import Any

from cirrusmq_local.testing import Client


def read_all(client: Client, path: str, name: str, query: str = "") -> list[dict[str, Any]]:
    """All entries of a listing, page after page; `name`: the answer's member that has them."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        reply = client.get(path, query + cursor)
        assert reply.status == 200, reply.text
        found += reply.json[name]
        if "cursor" not in reply.json:
            return found
        cursor = f"&cursor={reply.json['cursor']}"


def key_id(client: Client) -> str:
    """The id of the access key that a client calls with."""
    return client.authorization.removeprefix("Bearer ").partition(":")[0]
