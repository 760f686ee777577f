"""Messages per second beside other queues: the same clients, messages and machine, alternating.

For each service, in each round, four client processes send for some seconds, one message in a call,
then receive and delete these messages, one in a call; then both again in the service's largest
batches up to 16. Only one service works at a time, but all of them run. A machine is not equally
fast in each round, so a second table has the ratios within the rounds.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import time
from collections import defaultdict
from typing import Any

from ..drawing.tables import middle, show
from ..rivals import NotInstalled, Service, all_services, sdk_services
from ..rivals.ours import SERVICE as OURS

CLIENTS = 4
SECONDS = 1.5
ROUNDS, SDK_ROUNDS = 9, 5
BODY_BYTES = 1_024
EMPTY_LOOKS = 3
"""Empty receives after which a client takes the queue for empty."""
PHASES = (("send", 1), ("receive and delete", 1), ("send", 16), ("receive and delete", 16))
_BODY = "x" * BODY_BYTES
_FORK = multiprocessing.get_context("fork")


def run() -> None:
    """Prints the tables: each service by its own protocol, then by the SDK of SQS."""
    _compare("messages a second", all_services(), ROUNDS)
    print("\nBatches: ours and SKIP LOCKED 16, procrastinate defers 16 and fetches one by one;")
    print("beanstalkd has none. Only ours speaks HTTP.")
    _compare("messages a second, by boto3", sdk_services(), SDK_ROUNDS)
    print("\nBatches of 10. The SDK itself takes CPU of the same cores.")


def _compare(unit: str, services: list[Service], rounds: int) -> None:
    rates: defaultdict[tuple[str, str, int], list[float]] = defaultdict(list)
    with contextlib.ExitStack() as running:
        places = {}
        for service in services:
            try:
                places[service.name] = running.enter_context(service.running())
            except NotInstalled as missing:
                print(f"not measured, not installed: {missing}")
        services = [service for service in services if service.name in places]
        for number, service in itertools.product(range(rounds), services):
            _measure(service, places[service.name], f"bench{number}", rates)
    durable = ["yes" if service.durable else "no" for service in services]
    show(
        f"{CLIENTS} clients, {BODY_BYTES:,} bytes a message, median of {rounds} rounds in turn",
        [unit, *(each.name for each in services)],
        [
            ["an answered send is on disk", *durable],
            *([_phase(*phase), *_cells(services, phase, rates)] for phase in PHASES),
        ],
    )
    others = [service for service in services if service.name != OURS.name]
    show(
        "Ours to each other service within a round: the median, and the rounds that had ours ahead",
        ["", *(each.name for each in others)],
        [
            [_phase(*phase), *(_beside(rates, phase, service) for service in others)]
            for phase in PHASES
        ],
    )


def _measure(service: Service, place: Any, name: str, rates: dict[Any, list[float]]) -> None:
    for phase, batch in PHASES:
        # Otherwise left-over single messages would be received in batches.
        queue = f"{name}_{batch}"
        if phase == "send":
            with contextlib.closing(service.queue(place, queue)) as maker:
                maker.create()
        limit = service.send_batch if phase == "send" else service.take_batch
        if batch == 1 or limit > 1:
            if phase != "send":
                service.settle(place)
            count = min(batch, limit)
            rates[service.name, phase, batch].append(_rate(service, place, queue, phase, count))


def _rate(service: Service, place: Any, queue: str, phase: str, count: int) -> float:
    """Returns messages per second of all clients together."""
    ready = _FORK.Barrier(CLIENTS)
    results = _FORK.SimpleQueue()
    given = (service, place, queue, phase, count, ready, results)
    clients = [_FORK.Process(target=_client, args=given) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    if any(client.exitcode for client in clients):
        raise RuntimeError(f"a client of {service.name} failed")
    counted = [results.get() for _ in clients]
    return float(sum(moved for moved, _ in counted) / max(seconds for _, seconds in counted))


def _client(
    service: Service, place: Any, queue: str, phase: str, count: int, ready: Any, results: Any
) -> None:
    bodies = [_BODY] * count
    with contextlib.closing(service.queue(place, queue)) as mine:
        ready.wait()
        began = last = time.perf_counter()
        moved = empty = 0
        while last < began + SECONDS and empty < EMPTY_LOOKS:
            if phase == "send":
                mine.send(bodies)
                taken = count
            else:
                taken = mine.take(count)
            moved += taken
            empty = 0 if taken else empty + 1
            last = time.perf_counter() if taken else last
    results.put((moved, last - began))


def _phase(phase: str, batch: int) -> str:
    return f"{phase}, {'singles' if batch == 1 else 'batches'}"


def _beside(
    rates: dict[tuple[str, str, int], list[float]], phase: tuple[str, int], service: Service
) -> str:
    theirs = rates.get((service.name, *phase))
    if not theirs:
        return "none"
    ratios = [mine / other for mine, other in zip(rates[OURS.name, *phase], theirs, strict=True)]
    ahead = sum(ratio > 1 for ratio in ratios)
    return f"{middle(ratios):.2f} ({ahead} of {len(ratios)})"


def _cells(
    services: list[Service], phase: tuple[str, int], rates: dict[Any, list[float]]
) -> list[object]:
    found = [rates.get((service.name, *phase)) for service in services]
    return [middle(each) if each else "none" for each in found]
