"""A wave: some scenes at the same time, and parts beside them, with a fault; then all is judged."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from cirrusmq_local.verifying.accounts import own_account
from cirrusmq_local.verifying.functions import BrokenFunctions, Functions
from cirrusmq_local.verifying.hooks import BrokenHooks, Hooks
from cirrusmq_local.verifying.parts import PARTS, Part
from cirrusmq_local.verifying.proxy import Proxy
from cirrusmq_local.verifying.record import Options, Outcome
from cirrusmq_local.verifying.remote import Service, ServiceGone
from cirrusmq_local.verifying.run import Scene
from cirrusmq_local.verifying.windows import mark, one_fault

CALM_WAVES = 2
"""The first waves have no fault of the machine: waits, breakers and limits are judged there."""
WITH_HOOKS, WITH_PARTS = (0, 2), (1, 3)
"""The waves in which URLs of this machine and functions are played, and functions of groups. In a
run of fewer waves the last one has them."""


class Means(NamedTuple):
    """The ways to the service, and to the user."""

    admin: Service
    service: Service
    """With the key of the run's account, through the proxy."""
    guest: Service | None
    proxy: Proxy
    tell: Callable[[str], None]


def play_wave(
    means: Means, options: Options, names: Sequence[str], index: int, last: int, outcome: Outcome
) -> None:
    """Some scenes at the same time; in the first waves URLs and functions beside them.

    index, last: the numbers of this wave and of the last one.
    """
    hooked = index in {min(each, last) for each in WITH_HOOKS}
    parted = index in {min(each, last) for each in WITH_PARTS}
    if index < min(CALM_WAVES, last):
        options = replace(options, faults=[])
    admin, service, guest, proxy, tell = means
    prefix = f"verify-{options.id}"
    wanted: list[Scene | Hooks] = [
        Scene(service, name, options.scenes[name], prefix, options.seed, guest) for name in names
    ]
    if hooked and options.hooks:
        wanted += [kind(service, prefix, options.seed) for kind in (Hooks, BrokenHooks)]
    parts: list[Scene | Hooks | Part] = []
    try:
        for each in wanted:
            if is_made(each, outcome, tell):
                parts.append(each)
        kinds: list[type[Part]] = [Functions, BrokenFunctions] if hooked else []
        kinds += [PARTS[name] for name in options.parts] if parted else []
        kinds = [each for each in kinds if options.functions or not issubclass(each, Functions)]
        if kinds:
            parts += _made_by(kinds, admin, service, options, outcome, tell)
        beside = [each for each in parts if not isinstance(each, Scene)]
        outcome.hooks += beside
        windows = len(outcome.windows)
        before_ms = clock_offset_ms()
        proxy.on = True
        with one_fault(options, outcome):
            plays = [partial(part.play, options.play_seconds) for part in parts]
            _together(plays, outcome)
        proxy.on = False
        outcome.jumped_ms = max(outcome.jumped_ms, abs(clock_offset_ms() - before_ms))
        for part in parts:
            mark(part.remote.history, outcome.windows)
        for hooks in beside:
            hooks.disturbed = len(outcome.windows) > windows
        _together([part.drain for part in parts], outcome)
        if service.reach.gone:
            raise ServiceGone(f"nobody answers at {admin.url}")
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
                    leave_out(part.name, part.played.refused, outcome, tell)


def is_made(part: Scene | Hooks, outcome: Outcome, tell: Callable[[str], None]) -> bool:
    """Make a part. False if the service refuses that: an older release, or a limit is reached."""
    try:
        part.make()
    except ServiceGone:
        raise
    except ValueError as error:
        with contextlib.suppress(ValueError):
            part.remove()
        leave_out(part.name, str(error), outcome, tell)
        return False
    return True


def leave_out(name: str, why: str, outcome: Outcome, tell: Callable[[str], None]) -> None:
    outcome.left_out[name] = why
    tell(f"{name}: left out, {why}")


def clock_offset_ms() -> int:
    """This machine's clock less one that never jumps, in ms."""
    return (time.time_ns() - time.monotonic_ns()) // 1_000_000


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


def _made_by(
    kinds: Sequence[type[Part]],
    admin: Service,
    service: Service,
    options: Options,
    outcome: Outcome,
    tell: Callable[[str], None],
) -> list[Part]:
    """Parts that are made by an administrator of the run's account.

    The service may refuse them: it has not the function that asks here, or the key may not make
    an administrator.
    """
    made: list[Part] = []
    account = f"verify-{options.id}"
    maker, key = own_account(admin, account, admin=True)
    for kind in kinds:
        each = kind(service, account, options.seed)
        try:
            each.make_by(maker, admin)
        except ValueError as error:
            each.remove()
            leave_out(each.name, f"{each.needs}: {error}", outcome, tell)
        else:
            made.append(each)
    maker.close()
    if key is not None:
        admin.ask("DELETE", f"/keys/{key}")
    return made
