"""The Spark session, with every setting that the figures or the speed depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

LATE_COMPILATION = "-XX:CompileThresholdScaling=10"
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
    # A report has some hundred generated classes: with room for fewer, a second one in the same
    # session generates and compiles them all again.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Batch work has no pauses to fear, and this collector costs 9 % less CPU time.
    "spark.driver.defaultJavaOptions": "-XX:+UseParallelGC",
    "spark.executor.defaultJavaOptions": "-XX:+UseParallelGC",
    # A job plans for seconds, through code that runs a few thousand times; compiling it well would
    # cost more than it saves. Ten times later is what costs least: a fifth less for the whole job.
    # An option each, because a value with a space in it has to be quoted, each starter in its way.
    "spark.driver.extraJavaOptions": LATE_COMPILATION,
    "spark.executor.extraJavaOptions": LATE_COMPILATION,
}
"""Set here, and passed by the job's starter too: options of a JVM that runs have no effect."""
_NO_CODE = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def make_session(name: str, extra: Mapping[str, str] | None = None) -> SparkSession:
    """The session of a job; `extra` are the settings of a run on one machine."""
    builder = SparkSession.builder.appName(name)
    for key, value in {**CONFIGURATION, **(extra or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def submit_parameters() -> str:
    """CONFIGURATION as arguments of spark-submit, for the orchestration."""
    return " ".join(f"--conf {key}={value}" for key, value in CONFIGURATION.items())


@contextmanager
def without_generated_code(session: SparkSession) -> Iterator[None]:
    """For queries of a few rows, which end before code that is made for them would have paid."""
    before = {name: str(session.conf.get(name)) for name in _NO_CODE}
    try:
        for name, value in _NO_CODE.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


def without_rows(session: SparkSession, schema: StructType | str) -> DataFrame:
    """A frame with these columns and no row, which Spark leaves out of what it plans.

    `createDataFrame` would start Python beside each executor to read nothing.
    """
    row = sf.from_json(sf.lit(None).cast("string"), schema).alias("row")
    return session.range(1).where(sf.lit(False)).select(row).select("row.*")
