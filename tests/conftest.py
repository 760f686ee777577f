"""A running service, for the tests that look at it from outside."""

from __future__ import annotations

import gc
import os
import pickle
import signal
from collections import defaultdict
from collections.abc import Generator, Iterator
from functools import cache
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader, Loader
from tests.stack import Stack, Start


class ReadOnce(JSONFileLoader):  # type: ignore[misc]
    """Parses each of botocore's files once in a process: every session would parse them anew.

    Each reader gets an object of its own, for some write into it: moto its own errors of a service.
    """

    @staticmethod
    @cache
    def _parsed(file_path: str) -> bytes:
        return pickle.dumps(JSONFileLoader().load_file(file_path), pickle.HIGHEST_PROTOCOL)

    def load_file(self, file_path: str) -> Any:
        return pickle.loads(self._parsed(file_path))


def pytest_configure() -> None:
    """Let Ctrl-C end what tests start: background jobs of a shell ignore it, as do their own.

    And set what holds for the whole process.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    Loader.FILE_LOADER_CLASS = ReadOnce
    # Most of what a test makes is freed without it: looking for circles took 6 % of a run.
    gc.set_threshold(10_000, 20, 100)


ALONE = ("client", "local")
"""The folders that `make test` looks into for tests that run alone."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Refuse a test that nothing would run; deal those that are chosen to the workers."""
    for item in items:
        if _folder(item.path) not in ALONE and item.get_closest_marker("alone"):
            raise pytest.UsageError(f"{item.nodeid}: alone is of tests in {' and '.join(ALONE)}")
    _leave_few(items)
    yield
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        items[:] = _dealt(items, workers)


def _leave_few(items: list[pytest.Item]) -> None:
    """Mark as long what is above the number of cases that a test's `few` names."""
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("long"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for each in cases.values():
        marker = each[0].get_closest_marker("few")
        assert marker is not None
        count = marker.args[0]
        kept = {number * len(each) // count for number in range(count)}
        for number, item in enumerate(each):
            if number not in kept:
                item.add_marker(pytest.mark.long)


@cache
def _folder(path: Path) -> str:
    return path.relative_to(Path(__file__).parent).parts[0]


def _dealt(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """The tests in the order in which workers that begin with equal parts of it end together.

    Those on a running service wait for most of their time. At the end, the cores would wait with
    them: each worker begins with its part of their files, beside the reports' own tests.
    """
    waiting, others = (
        [list(each) for _, each in groupby(some, key=lambda item: item.path)]
        for some in (
            [item for item in items if _folder(item.path) in ALONE],
            [item for item in items if _folder(item.path) not in ALONE],
        )
    )
    left = chain.from_iterable(others)
    order: list[pytest.Item] = []
    for worker in range(workers):
        part = list(chain.from_iterable(waiting[worker::workers]))
        order += [*part, *islice(left, max(0, len(items) // workers - len(part)))]
    return [*order, *left]


def pytest_collection_finish() -> None:
    """Leave what was collected to no garbage collection: each would go through all of it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One service for all tests of a process that neither end it nor mind what others make."""
    running = Stack(tmp_path_factory.mktemp("stack"))
    yield running
    running.end()
    running.clean_up()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `cirrusmq up`, always on the same data."""
    started: list[Stack] = []

    def run(*arguments: str, installed: bool = False) -> Stack:
        started.append(Stack(tmp_path / "data", *arguments, installed=installed))
        return started[-1]

    yield run
    for stack in started:
        stack.clean_up()
