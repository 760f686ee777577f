"""A whole run: an account, waves of scenes with faults, the drain, the judges, the removal."""

from __future__ import annotations

import contextlib
import platform
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from cirrusmq_local.judging.history import Call
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.verifying import result
from cirrusmq_local.verifying.accounts import guest_of, own_account, proxy_of, through_of
from cirrusmq_local.verifying.function import GIVEN
from cirrusmq_local.verifying.functions import BrokenFunctions, Functions
from cirrusmq_local.verifying.hooks import BrokenHooks, Hooks
from cirrusmq_local.verifying.journal import Journal
from cirrusmq_local.verifying.played import Judged, Played
from cirrusmq_local.verifying.proxy import Proxy
from cirrusmq_local.verifying.remote import LOST, Service, ServiceGone, measure
from cirrusmq_local.verifying.run import Scene, waves
from cirrusmq_local.verifying.ticks import NAME as SCHEDULES
from cirrusmq_local.verifying.ticks import Ticks
from cirrusmq_local.verifying.usage import measure_usage

WITH_HOOKS = (0, 1)
"""The waves in which URLs of this machine and functions are played."""
MAX_DRIFT_MS = 1_000
"""Most drift of the service's clock against this machine's; beyond it times show nothing."""


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
    functions: bool
    """True if it has the function that asks here."""
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
    hooks: list[Hooks | Functions] = field(default_factory=list)
    """URLs of this machine, and functions of the service that ask here."""
    faults: Counter[str] = field(default_factory=Counter)
    windows: list[tuple[str, int, int]] = field(default_factory=list)
    """(fault, from, to) in ms."""
    capacity: dict[str, float] | None = None
    """Units that were consumed; None if the service does not tell."""
    usage: dict[str, dict[str, int]] | None = None
    """Kind of use -> the metered count, and its bounds by the calls; None if it is not told."""
    drift_ms: int = 0
    jumped_ms: int = 0
    """The most by which this machine's clock was set while scenes were played."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Scene -> why the service did not let it be played."""
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
        service, key = own_account(admin, prefix)
        ending.callback(service.close)
        proxy = proxy_of(admin.url, options.seed)
        ending.enter_context(proxy)
        through = through_of(service, proxy)
        ending.callback(through.close)
        ending.callback(lambda: None if admin.reach.gone else journal.done(number))
        guest = None
        if key is not None:
            ending.callback(admin.ask, "DELETE", f"/keys/{key}")
            guest = ending.enter_context(guest_of(admin, f"{prefix}-guest", journal, proxy))
        clock = f"{prefix}-clock"
        service.ask("PUT", f"/queues/{clock}", {})
        ending.callback(service.ask, "DELETE", f"/queues/{clock}")
        measure(service, clock)
        through.account, through.offset_ms = service.account, service.offset_ms
        through.max_skew_ms = service.max_skew_ms
        ticks = Ticks(service, prefix)
        try:
            ticks.make()
        except ServiceGone:
            raise
        except ValueError as error:
            _leave_out(SCHEDULES, str(error), outcome, tell)
        else:
            outcome.ticks = ticks.judged
        ending.callback(ticks.remove)
        before = _capacity(admin)
        played = [name for name, each in options.scenes.items() if guest or not _has_guest(each)]
        for name in sorted({*options.scenes} - {*played}):
            _leave_out(name, "the key may not make an account", outcome, tell)
        groups = list(waves(played))
        means = _Means(admin, through, guest, proxy, tell)
        for index, names in enumerate(groups):
            tell(f"{', '.join(names)}: {options.play_seconds:g} s")
            faults = options.faults if index or len(groups) == 1 else []
            _wave(means, replace(options, faults=faults), names, index, outcome)
        after = _capacity(admin)
        if before is not None and after is not None and not options.faults:
            outcome.capacity = {each: after[each] - before[each] for each in after}
        if outcome.ticks is not None:
            ticks.judge()
        if options.usage:
            outcome.usage = measure_usage(admin, outcome.played)
        was_ms = service.offset_ms
        measure(service, clock)
        outcome.drift_ms = abs(service.offset_ms - was_ms)
        outcome.faults.update({kind: n for kind, n in proxy.faults.items() if n})
    if outcome.drift_ms > MAX_DRIFT_MS:
        outcome.errors.append(f"the service's clock went {outcome.drift_ms} ms away during the run")
    if outcome.jumped_ms > MAX_DRIFT_MS:
        told = f"this machine's clock was set by {outcome.jumped_ms} ms during the run"
        outcome.errors.append(f"{told}: its times show nothing")
    return outcome


class _Means(NamedTuple):
    """The ways to the service, and to the user."""

    admin: Service
    service: Service
    """With the key of the run's account, through the proxy."""
    guest: Service | None
    proxy: Proxy
    tell: Callable[[str], None]


def _wave(
    means: _Means, options: Options, names: Sequence[str], index: int, outcome: Outcome
) -> None:
    """Some scenes at the same time; in the first waves the URLs and functions beside them.

    The first of several waves has no fault of the machine: breakers are judged without.
    """
    admin, service, guest, proxy, tell = means
    prefix = f"verify-{options.id}"
    wanted: list[Scene | Hooks] = [
        Scene(service, name, options.scenes[name], prefix, options.seed, guest) for name in names
    ]
    if index in WITH_HOOKS and options.hooks:
        wanted += [kind(service, prefix, options.seed) for kind in (Hooks, BrokenHooks)]
    parts: list[Scene | Hooks | Functions] = []
    try:
        for each in wanted:
            if _is_made(each, outcome, tell):
                parts.append(each)
        if index in WITH_HOOKS and options.functions:
            parts += _functions(admin, service, options, outcome, tell)
        beside = [each for each in parts if not isinstance(each, Scene)]
        outcome.hooks += beside
        windows = len(outcome.windows)
        clocks = _clocks()
        proxy.on = True
        with one_fault(options, outcome):
            plays = [partial(part.play, options.play_seconds) for part in parts]
            _together(plays, outcome)
        proxy.on = False
        outcome.jumped_ms = max(outcome.jumped_ms, abs(_clocks() - clocks))
        for part in parts:
            _mark(part.remote.history.calls, outcome.windows)
        _together([part.drain for part in parts], outcome)
        if service.reach.gone:
            raise ServiceGone(f"nobody answers at {admin.url}")
        for hooks in beside:
            hooks.disturbed = len(outcome.windows) > windows
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
                if part.played.refused:
                    _leave_out(part.name, part.played.refused, outcome, tell)


def _is_made(part: Scene | Hooks, outcome: Outcome, tell: Callable[[str], None]) -> bool:
    """Make a part. False if the service refuses that: an older release, or a limit is reached."""
    try:
        part.make()
    except ServiceGone:
        raise
    except ValueError as error:
        with contextlib.suppress(ValueError):
            part.remove()
        _leave_out(part.name, str(error), outcome, tell)
        return False
    return True


def _leave_out(name: str, why: str, outcome: Outcome, tell: Callable[[str], None]) -> None:
    outcome.left_out[name] = why
    tell(f"{name}: left out, {why}")


def _clocks() -> int:
    """This machine's clock less one that never jumps, in ms."""
    return (time.time_ns() - time.monotonic_ns()) // 1_000_000


@contextlib.contextmanager
def one_fault(options: Options, outcome: Outcome) -> Iterator[None]:
    """Makes one fault beside. It is undone at the end, also if that is an exception."""
    made = threading.Thread(target=_make_fault, args=(options, outcome), daemon=True)
    made.start()
    try:
        yield
    except BaseException:
        options.over.set()
        raise
    finally:
        made.join()


def _make_fault(options: Options, outcome: Outcome) -> None:
    if not options.faults or options.over.wait(options.play_seconds / 3):
        return
    kind, make = options.faults[len(outcome.windows) % len(options.faults)]
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


def _functions(
    admin: Service,
    service: Service,
    options: Options,
    outcome: Outcome,
    tell: Callable[[str], None],
) -> list[Functions]:
    """Queues with a function, made by an administrator of the run's account.

    None if the service has not the function that asks here, or the key may not make that one.
    """
    made: list[Functions] = []
    account = f"verify-{options.id}"
    maker, key = own_account(admin, account, admin=True)
    for kind in (Functions, BrokenFunctions):
        each = kind(service, account, options.seed)
        try:
            each.make_by(maker)
        except ValueError as error:
            each.remove()
            why = f"the service was not started with --function {GIVEN}: {error}"
            _leave_out(each.name, why, outcome, tell)
        else:
            made.append(each)
    maker.close()
    if key is not None:
        admin.ask("DELETE", f"/keys/{key}")
    return made


def _has_guest(scenario: Scenario) -> bool:
    return any(cast.part == "guest" for cast in scenario.cast)


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
    delays = [1_000 * late for each in outcome.hooks[:1] for late in _delays(each)]
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
        "clock": {"drift_ms": outcome.drift_ms, "set_by_ms": outcome.jumped_ms},
        "left_out": outcome.left_out,
        "violations": result.violations(outcome.played, others),
        "errors": outcome.errors,
    }


def _delays(part: Hooks | Functions) -> list[float]:
    return part.posted.delays() if isinstance(part, Hooks) else []


def machine_name() -> str:
    """The machine that made the calls."""
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
