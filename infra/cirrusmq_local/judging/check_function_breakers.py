"""Promises of a function's breaker, by the calls that the function saw.

    20 messages fail within a minute ── open: one message a call, 5 calls in a row take 11 s or more
    one succeeds ── closed: a message that waits is handed over soon

Workers add their outcomes once a second. Calls that begin when it is surely open are tries, and use
up no receive. A crash loses counts and waits, so this is asked of functions of which no worker was
disturbed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf

from cirrusmq_local.judging.check_breakers import (
    OUTCOMES,
    SOON_MS,
    SURELY_MS,
    TRIES_MS,
    may_have_opened,
)
from cirrusmq_local.judging.history import Call, Violation
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import HANDED, Book

_LEARNED_MS = 2_500
"""Time after which all workers that make calls know of others' outcomes."""


def check_function_breakers(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """All that is promised of every function with a breaker."""
    if not scenario.unfailing or any(
        call.disturbed or not call.known for call in book.by_kind["work"]
    ):
        return  # counts and waits may be lost; that no message is, is checked elsewhere
    for place, attributes in scenario.invoked.items():
        if attributes["invoke"].get("breaker"):
            yield from _Function(scenario, book, place).check()


class _Function:
    def __init__(self, scenario: Scenario, book: Book, place: str) -> None:
        self._scenario, self._book, self._place = scenario, book, place
        invoke = scenario.invoked[place]["invoke"]
        self._ordered = bool(scenario.invoked[place].get("ordered"))
        self._delay_ms: int = 1_000 * scenario.invoked[place].get("delay_seconds", 0)
        self._alone = invoke["max_concurrency"] == 1
        calls = (call for call in book.by_kind[HANDED] if call.place == place)
        self._calls = sorted(calls, key=lambda call: call.begun_ms)
        self._first_ms: dict[str, int] = {}
        """When each message was handed over for the first time."""
        for call in self._calls:
            for message in _messages(call):
                self._first_ms.setdefault(message.id, call.begun_ms)

    def check(self) -> Iterator[Violation]:
        tries = self._tries()
        yield from self._one_at_a_time(tries)
        yield from self._counted(tries)
        yield from self._waits_for_long()

    def _tries(self) -> list[Call]:
        """Calls that surely began while it was open: behind 20 added failures and no success."""
        found, failed = list[Call](), list[Call]()
        for call in self._calls:
            by_ms = call.begun_ms - (0 if self._alone else _LEARNED_MS)
            added = sum(
                len(_messages(each))
                for each in failed
                if self._added_ms(each) <= by_ms
                and call.begun_ms - each.given["until_ms"] < SURELY_MS
            )
            if found or added >= OUTCOMES:
                found.append(call)
            if _failed(call):
                failed.append(call)
            elif found:
                return found  # of the first outage: later ones are like it
            else:
                failed = []
        return found

    def _added_ms(self, call: Call) -> float:
        """When a call's outcomes had been added: at once if there is one worker, and else by its
        next call that ended a second later, or at its end."""
        ended_ms: int = call.given["until_ms"]
        if self._alone:
            return ended_ms
        invocation: Call = call.given["invocation"]
        later = (
            each.given["until_ms"]
            for each in self._calls
            if each.given["invocation"] is invocation and each.given["until_ms"] > ended_ms + 1_000
        )
        end_ms: float = invocation.ended_ms if invocation.known else inf
        added_ms: float = min([end_ms, *later])
        return added_ms

    def _one_at_a_time(self, tries: list[Call]) -> Iterator[Violation]:
        for call in tries:
            if len(_messages(call)) > 1:
                yield Violation("an open breaker hands over more than a message", (call,))
        for before, after in pairwise(tries):
            if after.begun_ms < before.given["until_ms"]:
                yield Violation("two messages are tried at once", (before, after))
        for first, last in zip(tries, tries[4:], strict=False):
            if last.begun_ms - first.begun_ms < TRIES_MS:
                yield Violation("calls go on though nearly all of them fail", (first, last))
                return

    def _counted(self, tries: list[Call]) -> Iterator[Violation]:
        """The receive of a try does not count."""
        for call in tries:
            for message in _messages(call) if _failed(call) else ():
                later = (
                    each
                    for after in self._calls
                    if after.begun_ms > call.begun_ms
                    for each in _messages(after)
                    if each.id == message.id and each.sent_ms == message.sent_ms
                )
                again = next(later, None)
                if again is not None and again.count > message.count:
                    told = "a try of an open breaker used up a receive"
                    yield Violation(told, (call, again.call))

    def _waits_for_long(self) -> Iterator[Violation]:
        """A message that was never handed over waits for long, and nothing is handed over.

        In order it may wait for the one in front of it; and nothing is handed over in a pause.
        """
        if self._ordered or self._scenario.paused:
            return
        for index, (before, after) in enumerate(pairwise(self._calls)):
            if not any(self._waited(after, message.id) for message in _messages(after)):
                continue
            if not _failed(before):
                yield Violation("one succeeds, and the next one waits for long", (before, after))
                return
            calls = self._calls[: index + 1]
            if not may_have_opened(
                [each.given["until_ms"] for each in calls for _ in _messages(each)]
            ):
                told = "it is open though no minute had 20 outcomes"
                yield Violation(told, (before, after))
                return

    def _waited(self, after: Call, message_id: str) -> bool:
        earlier = self._calls[: self._calls.index(after)]
        free_ms = max(call.given["until_ms"] for call in earlier)
        if self._first_ms[message_id] != after.begun_ms or after.begun_ms - free_ms < SOON_MS:
            return False
        sent_ms = self._book.sent_ms_of(message_id)
        return sent_ms is not None and sent_ms + self._delay_ms < free_ms - SOON_MS


def _messages(call: Call) -> list[Delivery]:
    messages: list[Delivery] = call.given["messages"]
    return messages


def _failed(call: Call) -> bool:
    """Returns True if the function succeeded at none of a call's messages."""
    return len(call.given["failed"]) == len(_messages(call))
