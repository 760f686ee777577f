"""A whole run: an account, waves of scenes with faults, the drain, the judges, the removal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.verifying.accounts import guest_of, own_account, proxy_of, through_of
from cirrusmq_local.verifying.changed_schedules import ChangedSchedules
from cirrusmq_local.verifying.functions import Functions
from cirrusmq_local.verifying.journal import Journal
from cirrusmq_local.verifying.parts import PARTS
from cirrusmq_local.verifying.record import Options, Outcome
from cirrusmq_local.verifying.remote import MAX_DRIFT_MS, Service, ServiceGone, measure
from cirrusmq_local.verifying.run import turned, waves
from cirrusmq_local.verifying.ticks import Ticks
from cirrusmq_local.verifying.usage import measure_usage
from cirrusmq_local.verifying.wave import Means, leave_out, play_wave


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
        ticks, changed = Ticks(service, prefix), ChangedSchedules(service, prefix, options.seed)
        ending.callback(ticks.remove)
        ending.callback(changed.remove)
        schedules: list[Ticks | ChangedSchedules] = [ticks, changed]
        for each in schedules:
            try:
                each.begin()
            except ServiceGone:
                raise
            except ValueError as error:
                leave_out(each.name, str(error), outcome, tell)
            else:
                outcome.schedules[each.name] = each.judged
        before = _capacity(admin)
        played = [name for name, each in options.scenes.items() if guest or not _has_guest(each)]
        for name in sorted({*options.scenes} - {*played}):
            leave_out(name, "the key may not make an account", outcome, tell)
        for name in () if options.functions else options.parts:
            if issubclass(PARTS[name], Functions):
                leave_out(name, "it needs a service on this machine", outcome, tell)
        groups = list(waves(turned(played, options.seed))) or [[]]
        means = Means(admin, through, guest, proxy, tell)
        for index, names in enumerate(groups):
            tell(f"{', '.join(names) or ', '.join(options.parts)}: {options.play_seconds:g} s")
            play_wave(means, options, names, index, len(groups) - 1, outcome)
        after = _capacity(admin)
        if before is not None and after is not None and not options.faults:
            outcome.capacity = {each: after[each] - before[each] for each in after}
        for each in schedules:
            if each.name in outcome.schedules:
                each.judge()
        outcome.errors += changed.errors
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


def _has_guest(scenario: Scenario) -> bool:
    return any(cast.part == "guest" for cast in scenario.cast)


def _capacity(admin: Service) -> dict[str, float] | None:
    """Units consumed since the start of a service on one machine."""
    try:
        told = admin.ask("GET", "/local/capacity")
    except ValueError:
        return None
    return {name: float(told[name]) for name in ("write_units", "read_units")}
