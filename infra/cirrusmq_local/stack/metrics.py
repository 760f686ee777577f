"""`GET /metrics`: the figures of the functions and of this machine, for Prometheus.

A scrape does not read the store: it shows the last figures, as CloudWatch does. The sweep reports
once a minute, the meter up to a minute after the counted event.
"""

from __future__ import annotations

import bisect
import logging
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

from cirrusmq.queues.resources import Resource
from cirrusmq_lambda import figures
from cirrusmq_lambda.figures import Figure, Values

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

MAX_RESOURCES = 1_000
"""Maximum number of resources with their own labels; the others are counted together."""
OTHERS = Resource(account="", kind="", name="(others)")
WAIT_BUCKETS = (0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 21_600.0, 86_400.0)
"""Bounds in seconds, for figures with a spread."""
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds in seconds. A receive may wait for 30."""

Rows: TypeAlias = Mapping[tuple[str, ...], float]
"""Values of a figure, by the values of its labels."""

SECONDS = Figure("cirrusmq_call_seconds", "Time from a call to its answer, waits included.")
READS = Figure("cirrusmq_read_units_total", "Read units of DynamoDB that calls consumed.")
WRITES = Figure("cirrusmq_write_units_total", "Write units of DynamoDB that calls consumed.")
ONE_MACHINE = (SECONDS, READS, WRITES)
"""In an account AWS itself has these: Latency of AWS/ApiGateway, Consumed…Units of AWS/DynamoDB."""


class _Spread:
    """Number of values up to each bound, as in a histogram of Prometheus."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect.bisect_left(self._bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """Returns each bound with the number of values that are not above it."""
        names = (*map(str, self._bounds), "+Inf")
        return list(zip(names, map(float, accumulate(self._counts)), strict=True))

    def family(self, figure: Figure) -> Metric:
        """Returns the histogram as a metric without labels."""
        from prometheus_client.core import HistogramMetricFamily

        return HistogramMetricFamily(
            figure.name, figure.help, buckets=self.buckets(), sum_value=self.sum
        )


class Metrics:
    """Keeps figures from the stack's start on. Its methods may be called by any thread.

    `capacity` returns the units consumed since the start, as `/local/capacity` does.
    """

    def __init__(self, capacity: Callable[[], Mapping[str, Any]]) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._values: dict[Figure, dict[Resource | None, float]] = defaultdict(dict)
        self._shown: dict[tuple[Figure, Resource | None], float] = {}
        """Values of counters as last shown: they never fall, also if a move takes a count back."""
        self._resources: set[Resource] = set()
        """Resources with their own labels in counters."""
        self._calls: dict[tuple[str, int], int] = defaultdict(int)
        self._durations: dict[str, _Spread] = defaultdict(partial(_Spread, BUCKETS))
        self._spreads: dict[Figure, _Spread] = defaultdict(partial(_Spread, WAIT_BUCKETS))
        self._errors = 0
        self._registry: CollectorRegistry | None = None

    def tell(self, values: Values) -> None:
        """Takes figures from a function."""
        with self._lock:
            for figure, value in values.items():
                if isinstance(value, Sequence):
                    for number in value:
                        self._spreads[figure].add(number)
                elif figure.counts:
                    self._add(figure, value)
                elif isinstance(value, Mapping):
                    self._values[figure] = dict(value.items())
                else:
                    self._values[figure] = {None: value}

    def note_call(self, function: str, status: int, seconds: float) -> None:
        """Counts an answered call. `function`: the name of its folder."""
        with self._lock:
            self._calls[function, status] += 1
            self._durations[function].add(seconds)

    def note_error(self) -> None:
        """Counts an error in a log."""
        with self._lock:
            self._errors += 1

    def render(self, accept: str) -> tuple[bytes, str]:
        """Returns the figures in the format that `accept` asks for, and the content type."""
        # A twelfth of a second that no start waits for.
        from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
        from prometheus_client.exposition import choose_encoder

        if self._registry is None:
            self._registry = CollectorRegistry()
            self._registry.register(self)
            ProcessCollector(registry=self._registry)
            PlatformCollector(registry=self._registry)
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def describe(self) -> Iterable[Metric]:
        """Returns nothing: only `collect` knows the figures."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Returns all figures now, for `prometheus_client`."""
        with self._lock:
            kept = [*self._told(), *self._served()]
        yield from kept
        units = self._capacity()["by_table"]
        for figure, kind in ((READS, "read_units"), (WRITES, "write_units")):
            rows: Rows = {(table,): float(each[kind]) for table, each in units.items()}
            yield _family(figure, ("table",), rows)

    def _add(self, figure: Figure, value: float | Mapping[Resource, float]) -> None:
        held = self._values[figure]
        if not isinstance(value, Mapping):
            held[None] = held.get(None, 0) + value
            return
        for resource, number in value.items():
            place = self._place(resource)
            held[place] = held.get(place, 0) + number

    def _place(self, resource: Resource) -> Resource:
        if resource not in self._resources:
            if len(self._resources) >= MAX_RESOURCES:
                return OTHERS
            self._resources.add(resource)
        return resource

    def _told(self) -> Iterable[Metric]:
        names = tuple(figures.labels(OTHERS))
        for figure in figures.TOLD:
            if figure.spread:
                yield self._spreads[figure].family(figure)
                continue
            held = self._held(figure)
            if figure.by_resource or figure in _BY_RESOURCE:
                rows = {
                    tuple(figures.labels(resource).values()): number
                    for resource, number in held.items()
                    if resource is not None
                }
                yield _family(figure, names, rows)
            elif held or figure.counts:
                yield _family(figure, (), {(): held.get(None, 0.0)})

    def _held(self, figure: Figure) -> Mapping[Resource | None, float]:
        held = self._values.get(figure, {})
        if not figure.counts:
            return held
        for place, number in held.items():
            self._shown[figure, place] = max(number, self._shown.get((figure, place), 0.0))
        return {place: self._shown[figure, place] for place in held}

    def _served(self) -> Iterable[Metric]:
        from prometheus_client.core import HistogramMetricFamily

        calls: Rows = {(name, str(status)): float(n) for (name, status), n in self._calls.items()}
        yield _family(figures.CALLS, ("function", "status"), calls)
        refused: dict[tuple[str, ...], float] = {(name,): 0.0 for name, _ in self._calls}
        for (name, status), number in self._calls.items():
            if 400 <= status < 500 and status != 429:
                refused[name,] += number
        yield _family(figures.REFUSALS, ("function",), refused)
        yield _family(figures.ERRORS, (), {(): float(self._errors)})
        seconds = HistogramMetricFamily(SECONDS.name, SECONDS.help, labels=["function"])
        for name, spread in self._durations.items():
            seconds.add_metric([name], spread.buckets(), spread.sum)
        yield seconds


class _ErrorCounter(logging.Handler):
    """Counts logged errors, each once, also if several loggers handle it."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(logging.ERROR)
        self._metrics = metrics

    def emit(self, record: logging.LogRecord) -> None:
        """Counts the record if it was not counted before."""
        if not hasattr(record, "counted"):
            record.counted = True
            self._metrics.note_error()


def count_errors(metrics: Metrics) -> Callable[[], None]:
    """Counts errors of functions and of the stack from now on. Returns a call that ends it."""
    counter = _ErrorCounter(metrics)
    # Powertools keeps the functions' lines from the root's handlers.
    loggers = logging.root, logging.getLogger(os.environ["POWERTOOLS_SERVICE_NAME"])
    for logger in loggers:
        logger.addHandler(counter)

    def end() -> None:
        for logger in loggers:
            logger.removeHandler(counter)

    return end


_BY_RESOURCE = frozenset((*figures.HAPPENED.values(), figures.ATTEMPTS))


def _family(figure: Figure, labels: tuple[str, ...], rows: Rows) -> Metric:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    kind = CounterMetricFamily if figure.counts else GaugeMetricFamily
    family = kind(figure.name, figure.help, labels=labels)
    for values, number in rows.items():
        family.add_metric(values, number)
    return family
