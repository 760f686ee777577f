"""A whole run: an account, waves of scenes with faults, the drain, the judges, the removal."""

from __future__ import annotations

import contextlib
import platform
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from cirrusmq_local.judging.history import Call
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.verifying import result
from cirrusmq_local.verifying.hooks import BrokenHooks, Hooks
from cirrusmq_local.verifying.journal import Journal
from cirrusmq_local.verifying.played import Judged, Played
from cirrusmq_local.verifying.proxy import Proxy
from cirrusmq_local.verifying.remote import LOST, Service, measure
from cirrusmq_local.verifying.run import Scene, waves
from cirrusmq_local.verifying.ticks import NAME as SCHEDULES
from cirrusmq_local.verifying.ticks import Ticks
from cirrusmq_local.verifying.usage import measure_usage

LOST_SHARE, CUT_SHARE = 0.02, 0.01
MAX_DRIFT_MS = 1_000
"""Most drift of the service's clock against this machine's; beyond it times show nothing."""
_CONNECTION = {"http": 80, "https": 443}


@dataclass
class Options:
    """The parts of a run."""

    id: str
    seed: int
    minutes: float
    play_seconds: float
    scenes: dict[str, Scenario]
    hooks: bool
    """True if the service can post to a URL of this machine."""
    usage: bool
    """True if the service's tables can be exported to this machine."""
    faults: Sequence[tuple[str, Callable[[], None]]]
    """(name, function that makes a fault and undoes it), one for each wave in turn."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set when the run ends early: faults wait for it, and are undone at once."""


@dataclass
class Outcome:
    """The records of a run, before it is judged as a whole."""

    played: list[Played] = field(default_factory=list)
    ticks: Judged | None = None
    hooks: list[Hooks] = field(default_factory=list)
    """URLs of this machine."""
    faults: Counter[str] = field(default_factory=Counter)
    windows: list[tuple[str, int, int]] = field(default_factory=list)
    """(fault, from, to) in ms."""
    capacity: dict[str, float] | None = None
    """Units that were consumed; None if the service does not tell."""
    usage: dict[str, dict[str, int]] | None = None
    """Kind of use -> the metered count, and its bounds by the calls; None if it is not told."""
    drift_ms: int = 0
    errors: list[str] = field(default_factory=list)

    def histories(self) -> list[tuple[str, list[Call]]]:
        """(scene, its calls)"""
        found = [(each.name, each.remote.history.calls) for each in self.played]
        return found + [(each.name, each.remote.history.calls) for each in self.hooks]


def run(
    admin: Service,
    options: Options,
    journal: Journal,
    tell: Callable[[str], None],
) -> Outcome:
    """Play everything. All that was made is removed, whatever happens."""
    outcome = Outcome()
    prefix = f"verify-{options.id}"
    with contextlib.ExitStack() as ending:
        number = journal.note({"kind": "remove", "prefix": prefix, "account": prefix})
        service, key = _own_account(admin, prefix)
        ending.callback(service.close)
        proxy = _proxy(admin.url, options.seed)
        ending.enter_context(proxy)
        through = _through(service, proxy)
        ending.callback(through.close)
        ending.callback(journal.done, number)
        if key is not None:
            ending.callback(admin.ask, "DELETE", f"/keys/{key}")
        clock = f"{prefix}-clock"
        service.ask("PUT", f"/queues/{clock}", {})
        ending.callback(service.ask, "DELETE", f"/queues/{clock}")
        measure(service, clock)
        through.account, through.offset_ms = service.account, service.offset_ms
        through.max_skew_ms = service.max_skew_ms
        ticks = Ticks(service, prefix)
        ticks.make()
        ending.callback(ticks.remove)
        outcome.ticks = ticks.judged
        before = _capacity(admin)
        for place, names in enumerate(waves(list(options.scenes))):
            tell(f"{', '.join(names)}: {options.play_seconds:g} s")
            hooks = place == 0 and options.hooks
            _wave(through, options, names, hooks, proxy, place, outcome)
        after = _capacity(admin)
        if before is not None and after is not None and not options.faults:
            outcome.capacity = {each: after[each] - before[each] for each in after}
        ticks.judge()
        if options.usage:
            outcome.usage = measure_usage(admin, outcome.played)
        was_ms = service.offset_ms
        measure(service, clock)
        outcome.drift_ms = abs(service.offset_ms - was_ms)
        outcome.faults.update({kind: n for kind, n in proxy.faults.items() if n})
    if outcome.drift_ms > MAX_DRIFT_MS:
        outcome.errors.append(f"the service's clock went {outcome.drift_ms} ms away during the run")
    return outcome


def _wave(
    service: Service,
    options: Options,
    names: Sequence[str],
    with_hooks: bool,
    proxy: Proxy,
    place: int,
    outcome: Outcome,
) -> None:
    """Some scenes at the same time."""
    prefix = f"verify-{options.id}"
    parts: list[Scene | Hooks] = [
        Scene(service, name, options.scenes[name], prefix, options.seed) for name in names
    ]
    if with_hooks:
        outcome.hooks = [kind(service, prefix, options.seed) for kind in (Hooks, BrokenHooks)]
        parts += outcome.hooks
    try:
        for part in parts:
            part.make()
        proxy.on = True
        with one_fault(options, place, outcome):
            plays = [partial(part.play, options.play_seconds) for part in parts]
            _together(plays, outcome)
        proxy.on = False
        for part in parts:
            _mark(part.remote.history.calls, outcome.windows)
        _together([part.drain for part in parts], outcome)
        for hooks in outcome.hooks:
            hooks.disturbed = bool(outcome.windows)
        for part in parts:
            part.judge()
    finally:
        proxy.on = False
        for part in parts:
            with contextlib.suppress(ValueError):
                part.remove()
            if isinstance(part, Scene):
                outcome.played.append(part.played)
                outcome.errors += part.played.errors


@contextlib.contextmanager
def one_fault(options: Options, place: int, outcome: Outcome) -> Iterator[None]:
    """Makes one fault beside. It is undone at the end, also if that is an exception."""
    made = threading.Thread(target=_make_fault, args=(options, place, outcome), daemon=True)
    made.start()
    try:
        yield
    except BaseException:
        options.over.set()
        raise
    finally:
        made.join()


def _make_fault(options: Options, place: int, outcome: Outcome) -> None:
    if not options.faults or options.over.wait(options.play_seconds / 3):
        return
    kind, make = options.faults[place % len(options.faults)]
    begun = time.time_ns() // 1_000_000
    try:
        make()
    except Exception as error:
        outcome.errors.append(f"{kind}: {error}")
    outcome.windows.append((kind, begun, time.time_ns() // 1_000_000))
    outcome.faults[kind] += 1


def _mark(calls: Sequence[Call], windows: Sequence[tuple[str, int, int]]) -> None:
    """A call in a fault's window may have done anything."""
    for call in calls:
        in_one = any(
            call.begun_ms <= until and min(call.ended_ms, call.begun_ms + 60_000) >= begun
            for _, begun, until in windows
        )
        if in_one and LOST not in call.faults:
            call.faults.append(LOST)


def _together(bodies: Sequence[Callable[[], None]], outcome: Outcome) -> None:
    def play(body: Callable[[], None]) -> None:
        try:
            body()
        except Exception as error:
            outcome.errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=play, args=(body,), daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _own_account(admin: Service, account: str) -> tuple[Service, str | None]:
    """A service with a key of a new account, and the key's id; without the right, as it is."""
    try:
        made = admin.ask("POST", "/keys", {"account": account})
    except ValueError:
        return Service(admin.url, admin.authorization, verify=admin.verify), None
    authorization = f"Bearer {made['access_key_id']}:{made['secret']}"
    return Service(admin.url, authorization, verify=admin.verify), str(made["access_key_id"])


def remove(admin: Service, prefix: str, account: str) -> None:
    """Remove the queues, topics and keys that a run left."""
    service, key = _own_account(admin, account)
    for kind in ("schedules", "topics", "queues"):
        for _ in range(2):  # a queue that others name is removed behind them
            for each in service.ask("GET", f"/{kind}?prefix={prefix}")[kind]:
                with contextlib.suppress(ValueError):
                    service.ask("DELETE", f"/{kind}/{each['name']}")
    service.close()
    if key is not None:
        admin.ask("DELETE", f"/keys/{key}")


def _proxy(url: str, seed: int) -> Proxy:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _CONNECTION[parts.scheme]
    return Proxy(host, port, seed=seed, lost=LOST_SHARE, cut=CUT_SHARE)


def _through(service: Service, proxy: Proxy) -> Service:
    own = f"http://127.0.0.1:{proxy.port}"
    if service.url.startswith("https:"):
        return Service(service.url, service.authorization, verify=service.verify, proxy=own)
    return Service(own, service.authorization)


def _capacity(admin: Service) -> dict[str, float] | None:
    """Units consumed since the start of a service on one machine."""
    try:
        told = admin.ask("GET", "/local/capacity")
    except ValueError:
        return None
    return {name: float(told[name]) for name in ("write_units", "read_units")}


def summarize(
    outcome: Outcome, options: Options, frame: dict[str, Any], plan: dict[str, Any]
) -> dict[str, Any]:
    """The result, unsigned. frame: `service`, `by` and the time."""
    others: list[tuple[str, Judged]] = [(each.name, each.posted) for each in outcome.hooks]
    if outcome.ticks is not None:
        others.append((SCHEDULES, outcome.ticks))
    delays = [1_000 * late for each in outcome.hooks[:1] for late in each.posted.delays()]
    measured: dict[str, Any] = dict.fromkeys(("write_units", "read_units", "dollars"))
    return {
        "format": result.FORMAT,
        **frame,
        "plan": {"minutes": options.minutes, "seed": options.seed, **plan},
        "faults": dict(outcome.faults),
        "windows": [list(each) for each in outcome.windows],
        "calls": result.calls([calls for _, calls in outcome.histories()]),
        "messages": result.messages(outcome.played),
        "publish_to_url_milliseconds": result.percentiles(delays),
        "promises": result.promises(outcome.played, others),
        "measured": measured | (outcome.capacity or {}),
        "usage": outcome.usage,
        "clock": {"drift_ms": outcome.drift_ms},
        "violations": result.violations(outcome.played, others),
        "errors": outcome.errors,
    }


def machine_name() -> str:
    """The machine that made the calls."""
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
