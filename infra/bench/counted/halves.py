"""Units of each call for half messages, counted by the embedded engine."""

from __future__ import annotations

from typing import Any

from cirrusmq_local.testing.world import Client

from .lives import Requests, Workload, units_of, world_with

CALLS = ("prepare", "check", "commit", "rollback")
_TERMS = {"check_after_seconds": 1}


def half_units(workload: Workload, call: str) -> tuple[float, float, Requests]:
    """Returns (write units, read units, calls of S3) of one of `CALLS`, with warm caches.

    The topic has one subscription; large messages are in objects, the default of a deployment.
    """
    world = world_with(Requests())
    alice = world.client("alice")
    alice.put("/topics/news")
    alice.put("/topics/news/subscriptions/group", {"protocol": "pull"})
    _decide(alice, "commit", _prepare(alice, workload))
    handle = "" if call == "prepare" else _prepare(alice, workload)
    world.clock.pass_seconds(1)
    _decide(alice, "commit", "")  # attributes are cached
    objects = Requests()

    def do() -> None:
        if call == "prepare":
            _prepare(alice, workload)
        elif call == "check":
            answer = alice.post("/topics/news/half/receive", {})
            if len(answer.json["transactions"]) != 1:
                raise RuntimeError(answer.text)
        else:
            _decide(alice, call, handle)

    written, read = units_of(world, do, objects)
    return written, read, objects


def _prepare(client: Client, workload: Workload) -> str:
    body: dict[str, Any] = {"messages": workload.messages(), "transaction": _TERMS}
    answer = client.post("/topics/news/messages", body)
    return str(answer.json["transaction"]["handle"])


def _decide(client: Client, verb: str, handle: str) -> None:
    answer = client.post(f"/topics/news/half/{verb}", {"handle": handle})
    if handle and answer.status not in (200, 204):
        raise RuntimeError(answer.text)
