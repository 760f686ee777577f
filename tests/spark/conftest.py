from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).parents[2]
# The jobs are programs, not an installed package: they find their modules beside themselves.
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "spark_emr")]

from tests.spark.job_runs import AT_MS, Jobs  # noqa: E402

from cirrusmq_reports.session import make_session  # noqa: E402
from local_run import LOCAL_CONFIGURATION, QUIET, prepare_java  # noqa: E402
from synthetic_messages import Messages  # noqa: E402
from synthetic_usage import Usage  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            # PySpark leaves it to reference counting to close the sockets that it collects by.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


JAVA = (
    # Many short jobs: compiling them well would take longer than they do.
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    # With that compiler alone there is room for 48 MB of code. Spark fills it: code would be thrown
    # away and made anew.
    "-XX:ReservedCodeCacheSize=256m "
    # Memory that grows in small steps is looked through at each.
    "-Xms1g -Xmn512m -XX:MetaspaceSize=256m"
)
ADAPTIVE = "spark.sql.adaptive.enabled"
PLAIN = {
    # Queries of a few records end before they are compiled, or planned anew with what was learnt.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    ADAPTIVE: "false",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    prepare_java()
    settings = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": f"{JAVA} {QUIET}",
        # Nobody looks at plans here.
        "spark.sql.ui.explainMode": "simple",
    }
    session = make_session("tests", LOCAL_CONFIGURATION | settings | PLAIN)
    yield session
    session.stop()


@pytest.fixture
def as_deployed(spark: SparkSession) -> Iterator[None]:
    """Queries are planned and compiled as in a deployment."""
    for name in PLAIN:
        spark.conf.unset(name)
    yield
    for name, value in PLAIN.items():
        spark.conf.set(name, value)


@pytest.fixture
def planned_as_deployed(spark: SparkSession) -> Iterator[None]:
    """Queries are planned anew with what was learnt: what is empty is left out."""
    spark.conf.unset(ADAPTIVE)
    yield
    spark.conf.set(ADAPTIVE, PLAIN[ADAPTIVE])


@pytest.fixture
def jobs(spark: SparkSession) -> Jobs:
    return Jobs(lambda: spark)


@pytest.fixture
def jobs_without_spark() -> Jobs:
    """For input that must be refused before Spark starts."""

    def start() -> NoReturn:
        raise AssertionError("Spark was started")

    return Jobs(start)


@pytest.fixture
def usage_export(tmp_path: Path) -> Path:
    """60 records of Usage in two data files."""
    return Usage(seed=1, records=60, at_ms=AT_MS, items_in_a_file=30).export(tmp_path)


@pytest.fixture
def messages_export(tmp_path: Path) -> Path:
    """60 items of Messages in two data files."""
    return Messages(seed=1, items=60, at_ms=AT_MS, items_in_a_file=30).export(tmp_path)
