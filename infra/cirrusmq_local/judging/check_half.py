"""Half messages: seen only once committed, decided once, asked for until they are decided.

When all is calm, each is committed once more: by then it was decided, and this call shows how.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from cirrusmq.base.limits import HALF_LIFE_MS
from cirrusmq_local.judging.half_producers import CHECK, PREPARE, ROLL_BACK, Asked
from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.tracks import Book

PROBE = "probe"
_SKEW_MS = 2 * MAX_SKEW_MS


def check_half(book: Book) -> Iterator[Violation]:
    """All that is promised of half messages."""
    commits = _by_handle([*book.by_kind["send"], *book.by_kind["send again"]])
    rollbacks = _by_handle(book.by_kind[ROLL_BACK])
    asked: defaultdict[str, list[tuple[Call, Asked]]] = defaultdict(list)
    for call in book.by_kind[CHECK]:
        for each in call.answer if call.known else ():
            asked[each.handle].append((call, each))
    for handle in {*commits, *rollbacks, *asked}:
        yield from _decided_once(commits[handle], rollbacks[handle])
        yield from _asked(asked[handle])
        yield from _in_time(book, commits[handle], rollbacks[handle], asked[handle])
    yield from _seen(book, commits)


def _by_handle(calls: list[Call]) -> defaultdict[str, list[Call]]:
    held: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if "handle" in call.given:
            held[call.given["handle"]].append(call)
    return held


def _decided_once(commits: list[Call], rollbacks: list[Call]) -> Iterator[Violation]:
    committed = [call for call in commits if call.known]
    dropped = [call for call in rollbacks if call.known]
    if committed and dropped:
        yield Violation("committed and rolled back", (committed[0], dropped[0]))
    for before, after in pairwise(committed):
        if before.answer != after.answer:
            yield Violation("two commits were answered differently", (before, after))
    probes = [call for call in commits if PROBE in call.given]
    tried = [call for call in commits if call.effective and PROBE not in call.given]
    for probe in probes:
        if probe.known and not tried:
            yield Violation("it was never decided, and nobody was asked any more", (probe,))


def _asked(asked: list[tuple[Call, Asked]]) -> Iterator[Violation]:
    # If two calls overlap, the call that began later may get the half message first.
    counted = sorted(asked, key=lambda each: each[1].checks)
    for (call, first), (other, second) in pairwise(counted):
        if second.checks == first.checks:
            yield Violation("a check was not counted", (call, other))
        until_ms = first.held_until_ms - call.skew_ms
        if other.ended_ms < until_ms - _SKEW_MS:
            yield Violation("two producers were asked at once", (call, other))
    for call, each in asked:
        if each.checks > each.max_checks:
            yield Violation("asked for more often than it said", (call,))


def _in_time(
    book: Book, commits: list[Call], rollbacks: list[Call], asked: list[tuple[Call, Asked]]
) -> Iterator[Violation]:
    """Nobody but its producers ends it before the last check is over, and none commits after."""
    last = [each for each in asked if each[1].checks == each[1].max_checks]
    first = next((call for call in commits if call.effective and PROBE not in call.given), None)
    for call, each in last:
        late = [other for other in commits if other.known and other is first]
        for other in late:
            if other.begun_ms > each.expires_ms - call.skew_ms + _SKEW_MS:
                yield Violation("committed though its time was over", (call, other))
    unknown = any(not call.known for call in book.by_kind[CHECK])
    for call in commits:
        if call.outcome != "refused" or "Conflict" not in str(call.answer):
            continue
        if any(other.effective and other.begun < call.ended for other in rollbacks):
            continue
        if unknown and not last:
            continue
        over_ms = min(
            [each.expires_ms - other.skew_ms for other, each in last]
            + [prepared.begun_ms + HALF_LIFE_MS for prepared in _prepared(book, call)],
            default=1 << 60,
        )
        if call.ended_ms < over_ms - _SKEW_MS:
            yield Violation("rolled back by nobody, before its time was over", (call,))


def _prepared(book: Book, decision: Call) -> list[Call]:
    """The call that prepared what a decision is about; none, if its answer was lost."""
    labels = decision.given["labels"]
    return [call for call in book.by_kind[PREPARE] if call.given["labels"] == labels]


def _seen(book: Book, commits: dict[str, list[Call]]) -> Iterator[Violation]:
    """No prepared message is received before its commit, or at all if it was rolled back."""
    prepared = {label: call for call in book.by_kind[PREPARE] for label in call.given["labels"]}
    of_label = {
        label: calls for calls in commits.values() if calls for label in calls[0].given["labels"]
    }
    for track in book.tracks.values():
        for delivery in track.deliveries:
            if delivery.label not in prepared:
                continue
            calls = [call for call in of_label.get(delivery.label, []) if call.effective]
            if not any(call.begun < delivery.call.ended for call in calls):
                seen = (prepared[delivery.label], delivery.call)
                yield Violation("received though it was not committed", seen)
            refused = [
                call
                for call in of_label.get(delivery.label, [])
                if PROBE in call.given and call.outcome == "refused"
            ]
            if refused:
                yield Violation("received, and rolled back", (delivery.call, refused[0]))
