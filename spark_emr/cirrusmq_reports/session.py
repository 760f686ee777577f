"""The Spark session, with every setting that the figures or the speed depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

JAVA_OPTIONS = " ".join(
    (
        # Batch work has no pauses to fear. A night of 300,000 messages takes 62.5 CPU seconds so,
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
"""Of the driver and of the executors; 10 x HotSpot's thresholds of its fourth tier."""
CONFIGURATION: Mapping[str, str] = {
    # A figure's meaning must not depend on the cluster's defaults.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # A file that cannot be read is an error, never fewer items.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # A compressed file is never split; near one file's size, each gets a task of its own.
    "spark.sql.files.maxPartitionBytes": str(32 << 20),
}
JAVA_CONFIGURATION: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
}
"""Options of a JVM that runs have no effect: a job's starter passes these, apart from the others.

On the cluster they are the job's `spark-defaults`: their spaces would have to be quoted as
arguments of spark-submit.
"""
_BYTES_OF_A_PARTITION, _PARTITIONS_MOST = 16 << 20, 20_000
"""Of compressed exports: their items are near three times as much on their way in a shuffle."""
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def make_session(name: str, extra: Mapping[str, str] | None = None) -> SparkSession:
    """The session of a job; `extra` are the settings of a run on one machine."""
    builder = SparkSession.builder.appName(name)
    for key, value in {**CONFIGURATION, **JAVA_CONFIGURATION, **(extra or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def submit_parameters() -> str:
    """CONFIGURATION as arguments of spark-submit, for the orchestration."""
    return " ".join(f"--conf {key}={value}" for key, value in CONFIGURATION.items())


def partitions_for(size: int, at_least: int) -> int:
    """The partitions of a shuffle of exports of so many bytes: near one size each."""
    return max(at_least, min(_PARTITIONS_MOST, size // _BYTES_OF_A_PARTITION))


@contextmanager
def partitioned_for(session: SparkSession, size: int) -> Iterator[None]:
    """Shuffle into as many partitions as exports of so many bytes need."""
    before = str(session.conf.get(_SHUFFLE_PARTITIONS))
    try:
        session.conf.set(_SHUFFLE_PARTITIONS, str(partitions_for(size, int(before))))
        yield
    finally:
        session.conf.set(_SHUFFLE_PARTITIONS, before)


def without_rows(session: SparkSession, schema: StructType | str) -> DataFrame:
    """A frame with these columns and no row, which Spark leaves out of what it plans.

    `createDataFrame` would start Python beside each executor to read nothing.
    """
    row = sf.from_json(sf.lit(None).cast("string"), schema).alias("row")
    return session.range(1).where(sf.lit(False)).select(row).select("row.*")
