"""The promises of the manual's page, by their ids, and the checks that judge each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from cirrusmq_local.judging.cancellers import check_cancelled
from cirrusmq_local.judging.check_choices import check_choices
from cirrusmq_local.judging.check_dead_letters import check_dead_letters
from cirrusmq_local.judging.check_half import check_half
from cirrusmq_local.judging.check_heads import check_heads
from cirrusmq_local.judging.check_leases import check_leases
from cirrusmq_local.judging.check_lives import check_lives
from cirrusmq_local.judging.check_logs import check_logs
from cirrusmq_local.judging.check_order import check_order
from cirrusmq_local.judging.check_priorities import check_priorities
from cirrusmq_local.judging.check_rates import check_rates
from cirrusmq_local.judging.check_repeats import check_repeats
from cirrusmq_local.judging.check_replacing import check_replacing
from cirrusmq_local.judging.check_replies import check_replies
from cirrusmq_local.judging.check_rewinds import check_rewinds
from cirrusmq_local.judging.check_senders import check_senders
from cirrusmq_local.judging.check_turns import check_in_flight, check_shares
from cirrusmq_local.judging.check_waits import check_waits
from cirrusmq_local.judging.half_producers import PREPARE
from cirrusmq_local.judging.history import Violation
from cirrusmq_local.judging.pausers import check_pauses
from cirrusmq_local.judging.tracks import Book
from cirrusmq_local.verifying.played import Played

Judge: TypeAlias = "Callable[[Played, Book], Iterator[Violation]]"
PROMISES = (
    "never-lost",
    "dialects",
    "priorities",
    "fair",
    "raced-receives",
    "counts",
    "expired-groups",
    "purged-duplicates",
    "found",
    "due",
    "models",
    "one-holder",
    "ended-groups",
    "ordered",
    "first-seen",
    "letters",
    "answer-sizes",
    "half",
    "failing-handlers",
    "grants",
    "engine",
    "retries",
    "paused",
    "breakers",
    "one-end",
    "replaced",
    "schedules",
    "slow-urls",
    "every-subscription",
    "log",
    "handed-out-again",
    "restores",
    "functions",
    "secret",
    "keys",
    "direct-urls",
    "own-process",
    "releases",
    "access",
    "addresses",
    "templates",
    "exports",
    "custom-resources",
    "invoices",
    "usage",
)
"""The ids of the manual's page, in its order."""
MAX_VIOLATIONS = 20
"""Most violations of one check in one scene that a result shows."""
NEVER = 1 << 30
_BRINGING = {"redriver", "rewinder", "group rewinder", "opener"}
_CHANGING = {*_BRINGING, "canceller", "pauser", "purger"}
_RATES = {"send_rate", "receive_rate"}
_PLACED = {"ordered", "retry", "dead_letter", "max_in_flight"}
"""Attributes by which a message may be elsewhere than where a receive looks."""


def _parts(played: Played) -> set[str]:
    return {cast.part for cast in played.scenario.cast}


def _lives(played: Played, book: Book) -> Iterator[Violation]:
    yield from check_lives(played.scenario, book, played)
    if played.undrained:
        yield Violation(f"blocked for good: {', '.join(played.undrained)}")


def _order(played: Played, book: Book) -> Iterator[Violation]:
    scenario = played.scenario
    if scenario.queues["orders"].get("ordered"):
        yield from check_order(book, "orders", NEVER)
    if scenario.subscriptions.get("group", {}).get("ordered") and not scenario.rewound:
        yield from check_order(book, "news/group", NEVER)


def _fair(played: Played, book: Book) -> Iterator[Violation]:
    if played.scenario.queues["orders"].get("fair"):
        yield from check_in_flight(played.scenario, book)
        yield from check_shares(played.scenario, book)
        yield from check_rates(played.scenario, book)


def _rates(played: Played, book: Book) -> Iterator[Violation]:
    if _RATES & {*played.scenario.queues["orders"]}:
        yield from check_rates(played.scenario, book)


def _counts(played: Played, book: Book) -> Iterator[Violation]:
    """The counts of the calm equal the messages that could be received then."""
    if played.scenario.subscriptions or any(book.by_kind[kind] for kind in ("redrive", "rewind")):
        return  # copies may be under way
    kept = sum(left.kept for left in played.left.values())
    received = sum(left.received for left in played.left.values())
    if kept != received:
        yield Violation(f"the counts showed {kept} messages, {received} were received")


def _heads(played: Played, book: Book) -> Iterator[Violation]:
    yield from check_heads(played.scenario, played.remote, book)


def _waits(played: Played, book: Book) -> Iterator[Violation]:
    if any("retry" in each for each in played.scenario.queues.values()) or any(
        "retry" in each for each in played.scenario.subscriptions.values()
    ):
        yield from check_waits(played.scenario, book)


JUDGES: dict[str, tuple[tuple[str, Judge], ...]] = {
    "never-lost": (
        ("lives", _lives),
        ("rewinds", lambda played, book: check_rewinds(played.scenario, book, played)),
    ),
    "grants": (("senders", lambda played, book: check_senders(book)),),
    "one-holder": (
        ("leases", lambda played, book: check_leases(book)),
        ("repeats", lambda played, book: check_repeats(book)),
    ),
    "priorities": (
        (
            "priorities",
            lambda played, book: check_priorities(played.scenario, played.remote, book),
        ),
    ),
    "fair": (("turns", _fair),),
    "counts": (("counts", _counts),),
    "found": (("choices", lambda played, book: check_choices(book)),),
    "first-seen": (("heads", _heads),),
    "ordered": (("order", _order),),
    "letters": (("dead letters", lambda played, book: check_dead_letters(played.scenario, book)),),
    "half": (("half", lambda played, book: check_half(book)),),
    "log": (("logs", lambda played, book: check_logs(book)),),
    "due": (("cancelled", lambda played, book: check_cancelled(book)), ("rates", _rates)),
    "retries": (("waits", _waits),),
    "paused": (("pauses", lambda played, book: check_pauses(played.scenario, book)),),
    "one-end": (("replies", lambda played, book: check_replies(book)),),
    "replaced": (("replacing", lambda played, book: check_replacing(played.scenario, book)),),
}
"""Id of a promise -> its checks, each with a name."""
NEEDS: dict[str, Callable[[Played], bool]] = {
    "counts": lambda played: (
        not played.scenario.subscriptions
        and not played.estimated
        and not _parts(played) & _BRINGING
        and not played.scenario.asking  # requests expire
    ),
    "grants": lambda played: "guest" in _parts(played),
    "found": lambda played: (
        played.scenario.choices > 0 and not played.scenario.queues["orders"].get("fair")
    ),
    "first-seen": lambda played: (
        not played.scenario.subscriptions
        and not _parts(played) & _CHANGING
        and not {*played.scenario.queues["orders"]} & _PLACED
    ),
    "due": lambda played: bool(
        played.scenario.queues["orders"]["delay_seconds"]
        or "canceller" in _parts(played)
        or _RATES & {*played.scenario.queues["orders"]}
    ),
    "priorities": lambda played: bool(played.scenario.queues["orders"].get("priorities")),
    "fair": lambda played: bool(played.scenario.queues["orders"].get("fair")),
    "ordered": lambda played: any(
        each.get("ordered")
        for each in (*played.scenario.queues.values(), *played.scenario.subscriptions.values())
    ),
    "letters": lambda played: "dead" in played.scenario.queues,
    "half": lambda played: played.scenario.halves,
    "log": lambda played: any(each.part == "log reader" for each in played.scenario.cast),
    "paused": lambda played: "pauser" in _parts(played),
    "one-end": lambda played: played.scenario.asking > 0,
    "replaced": lambda played: played.scenario.replacing > 0,
    "retries": lambda played: any(
        "retry" in each
        for each in (*played.scenario.queues.values(), *played.scenario.subscriptions.values())
    ),
}
"""Id of a promise -> if a scene can show it; any scene can show the others."""


HAPPENED: dict[str, str] = {"one-end": "asks", "replaced": "replaces"}
"""Id of a promise -> what an answered send of a scene has, if the scene tried it."""
_SENDS = ("send", "send again", PREPARE)


def judge(played: Played) -> None:
    """Check a scene against every promise that it can show."""
    book = Book(played.remote.history)
    sends = [call for call in played.remote.history.calls if call.kind in _SENDS]
    taken = [call for call in sends if call.known]
    if sends and not taken:
        refusals = (str(call.answer) for call in sends if call.outcome == "refused")
        played.refused = next(refusals, "no send was answered")
        return
    for promise, checks in JUDGES.items():
        shows, had = NEEDS.get(promise), HAPPENED.get(promise)
        if shows is not None and not shows(played):
            continue
        if had is not None and not any(call.given.get(had) for call in taken):
            continue
        played.judged[promise] = len(played.remote.history.calls)
        for _, check in checks:
            for number, violation in enumerate(check(played, book)):
                if number >= MAX_VIOLATIONS:
                    break
                played.violations.append((_promise_of(promise, played, violation), violation))
    if played.scenario.subscriptions:
        played.judged["every-subscription"] = len(played.remote.history.calls)
    if book.by_kind["purge"]:
        played.judged["purged-duplicates"] = len(played.remote.history.calls)


def _promise_of(promise: str, played: Played, violation: Violation) -> str:
    """The promise that a violation is of, where a check judges several."""
    if promise == "never-lost" and "before its delay" in violation.promise:
        return "due"
    if promise == "never-lost" and "purge" in violation.promise:
        return "purged-duplicates"
    if promise == "never-lost" and played.scenario.subscriptions and "lost" in violation.promise:
        return "every-subscription"
    return promise
