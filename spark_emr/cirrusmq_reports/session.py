"""The Spark session, with every setting that the figures or the speed depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

JAVA_OPTIONS = " ".join(
    (
        # Pauses do no harm in batch work. A night of 300,000 messages takes 62.5 CPU seconds so,
        # and 68.5 without (`night_cpu --without collector`; means of two runs each, in turn, whose
        # own spreads were 4.2 and 1.7, beside other work).
        "-XX:+UseParallelGC",
        # A job plans for seconds, through code that runs a few thousand times. The fast compiler
        # takes it at once; the thorough one ten times later than by default, or it would cost more
        # than it saves. A night of 2 million messages takes 68 and 79 CPU seconds so, and 81 and 86
        # without (`night_cpu --without compiler`, two runs of each, in turn).
        "-XX:Tier4InvocationThreshold=50000",
        "-XX:Tier4MinInvocationThreshold=6000",
        "-XX:Tier4CompileThreshold=150000",
        "-XX:Tier4BackEdgeThreshold=400000",
    )
)
"""Options for driver and executors; with 10 x HotSpot's thresholds of its fourth tier."""
CONFIGURATION: Mapping[str, str] = {
    # A figure's meaning must not depend on the cluster's defaults.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # A file that cannot be read is an error, never fewer items.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # A compressed file is never split; near one file's size, each gets its own task.
    "spark.sql.files.maxPartitionBytes": str(32 << 20),
}
JAVA_CONFIGURATION: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
}
"""Options of a running JVM have no effect, so a job's starter passes these separately.

On the cluster they are the job's `spark-defaults`: their spaces would have to be quoted as
arguments of spark-submit.
"""
_BYTES_OF_A_PARTITION, _PARTITIONS_MOST = 16 << 20, 20_000
"""Bytes of compressed exports; in a shuffle their items take almost three times as much."""
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def make_session(name: str, extra: Mapping[str, str] | None = None) -> SparkSession:
    """Returns the session of a job. `extra`: settings of a run on one machine."""
    builder = SparkSession.builder.appName(name)
    for key, value in {**CONFIGURATION, **JAVA_CONFIGURATION, **(extra or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def submit_parameters() -> str:
    """Returns CONFIGURATION as arguments of spark-submit, for the orchestration."""
    return " ".join(f"--conf {key}={value}" for key, value in CONFIGURATION.items())


def partitions_for(size: int, at_least: int) -> int:
    """Returns the partitions for a shuffle of exports of `size` bytes, of almost equal size."""
    return max(at_least, min(_PARTITIONS_MOST, size // _BYTES_OF_A_PARTITION))


@contextmanager
def partitioned_for(session: SparkSession, size: int) -> Iterator[None]:
    """Sets the partitions of shuffles, within the context, for exports of `size` bytes."""
    before = str(session.conf.get(_SHUFFLE_PARTITIONS))
    try:
        session.conf.set(_SHUFFLE_PARTITIONS, str(partitions_for(size, int(before))))
        yield
    finally:
        session.conf.set(_SHUFFLE_PARTITIONS, before)


def without_rows(session: SparkSession, schema: StructType | str) -> DataFrame:
    """Returns a frame with these columns and no row, which Spark removes from its plan.

    `createDataFrame` would start Python beside each executor to read nothing.
    """
    row = sf.from_json(sf.lit(None).cast("string"), schema).alias("row")
    return session.range(1).where(sf.lit(False)).select(row).select("row.*")
