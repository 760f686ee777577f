"""File operations that Spark does not do, on disk or in a bucket."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import uuid
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports.errors import BadInput

WRITERS = 16
"""Number of files that are written in parallel in a bucket."""
_CHUNK_BYTES = 1 << 20
_MAKING = ".making"


@dataclass(frozen=True, slots=True)
class Facts:
    """Size and digest of a data file."""

    size: int
    """In bytes."""
    digest: str
    """MD5 in base64."""


class Files(Protocol):
    """Reads and writes files by plain paths or URIs. A missing file raises FileNotFoundError."""

    def read(self, path: str) -> bytes:
        """Returns the content of a small file."""

    def names(self, folder: str) -> list[str]:
        """Returns the names in a folder, or none if it does not exist."""

    def is_folder(self, path: str) -> bool | None:
        """Returns True for a folder, False for a file, None if the path does not exist."""

    def facts(self, paths: Iterable[str]) -> dict[str, Facts]:
        """Returns the size and the digest of each data file."""

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Writes files that do not exist yet."""

    def replace(self, path: str, content: bytes) -> None:
        """Writes a file so that readers see its old or its new content, never a part."""

    def remove(self, folder: str) -> None:
        """Removes a folder with all its content, if it exists."""


class LocalFiles:
    """Files on this machine's disk."""

    def read(self, path: str) -> bytes:
        """Returns the content of a small file."""
        return Path(path).read_bytes()

    def names(self, folder: str) -> list[str]:
        """Returns the names in a folder, or none if it does not exist."""
        return sorted(os.listdir(folder)) if Path(folder).is_dir() else []

    def is_folder(self, path: str) -> bool | None:
        """Returns True for a folder, False for a file, None if the path does not exist."""
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def facts(self, paths: Iterable[str]) -> dict[str, Facts]:
        """Returns size and digest of each data file; one file for each processor in parallel."""
        named = [*paths]
        # The digest is computed without Python's lock, and a file is never whole in memory.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return dict(zip(named, pool.map(_facts, named), strict=True))

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Writes files that do not exist yet."""
        for path, content in contents.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            try:
                Path(path).write_bytes(content)
            except OSError as error:
                # On a full disk the write fails, and its error names no file.
                raise OSError(error.errno, error.strerror, path) from error

    def replace(self, path: str, content: bytes) -> None:
        """Writes a file under another name, then renames it."""
        making = Path(f"{path}.{uuid.uuid4().hex}{_MAKING}")
        try:
            self.write({str(making): content})
            os.replace(making, path)
        finally:
            making.unlink(missing_ok=True)

    def remove(self, folder: str) -> None:
        """Removes a folder with all its content, if it exists."""
        if Path(folder).is_dir():
            shutil.rmtree(folder)


class HadoopFiles:
    """Files in one of Hadoop's file systems, mostly S3."""

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self._session = session

    def read(self, path: str) -> bytes:
        """Returns the content of a small file."""
        frame = self._session().read.format("binaryFile").load(escape_pattern(self._found(path)))
        return bytes(frame.select("content").collect()[0]["content"])

    def names(self, folder: str) -> list[str]:
        """Returns the names in a folder, or none if it does not exist."""
        system, path = self._open(folder)
        if not system.exists(path):
            return []
        return sorted(status.getPath().getName() for status in system.listStatus(path))

    def is_folder(self, path: str) -> bool | None:
        """Returns True for a folder, False for a file, None if the path does not exist."""
        # The slash makes a bucket its own root folder; elsewhere it is dropped.
        system, place = self._open(f"{path}/")
        if not system.exists(place):
            return None
        return bool(system.getFileStatus(place).isDirectory())

    def facts(self, paths: Iterable[str]) -> dict[str, Facts]:
        """Returns the size and the digest of each data file, computed by the executors.

        The driver never gets the bytes, and the work is distributed as reading is. Each file is
        read a second time, which costs a twentieth of the CPU time of parsing it. The entity tag
        of a listing would be cheaper, but for a multipart upload it is no digest of the content,
        and Spark's listing does not return it.
        """
        found = self._listed(paths)
        if not found:
            return {}
        frame = (
            self._session().read.format("binaryFile").load([escape_pattern(path) for path in found])
        )
        digest = sf.base64(sf.unhex(sf.md5("content"))).alias("digest")
        rows = frame.select("path", "length", digest).toLocalIterator()
        return {found[row["path"]]: Facts(row["length"], row["digest"]) for row in rows}

    def _listed(self, paths: Iterable[str]) -> dict[str, str]:
        """Returns Spark's name of each file → the path, by one listing for each folder.

        Without the listing each file would need two calls of the store, one after the other.
        """
        by_folder: dict[str, list[str]] = {}
        for path in paths:
            by_folder.setdefault(path.rpartition("/")[0], []).append(path)
        found: dict[str, str] = {}
        for folder, own in by_folder.items():
            system, place = self._open(folder)
            listed = system.listStatus(place) if system.exists(place) else []
            files = {
                status.getPath().getName(): str(status.getPath().toString())
                for status in listed
                if not status.isDirectory()
            }
            for path in own:
                name = files.get(path.rpartition("/")[2])
                # A file that is not in the listing is looked up separately, which raises the error.
                found[name or self._found(path)] = path
        return found

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Writes files that do not exist yet, several in parallel, as each waits for the store."""

        def write(path: str) -> None:
            self._write(*self._open(path), contents[path])

        with ThreadPoolExecutor(WRITERS) as pool:
            # The results are read, so that a failure is raised.
            for _ in pool.map(write, contents):
                pass

    def replace(self, path: str, content: bytes) -> None:
        """Writes a file; an object appears whole when it is closed, elsewhere by a rename."""
        system, place = self._open(path)
        if system.getScheme().startswith("s3"):
            self._write(system, place, content)
            return
        making = place.suffix(f".{uuid.uuid4().hex}{_MAKING}")
        self._write(system, making, content)
        hadoop = self._hadoop()
        overwriting = self._gateway().new_array(hadoop.Options.Rename, 1)
        overwriting[0] = hadoop.Options.Rename.OVERWRITE
        hadoop.FileContext.getFileContext(system.getUri()).rename(making, place, overwriting)

    def remove(self, folder: str) -> None:
        """Removes a folder with all its content, if it exists."""
        system, place = self._open(folder)
        system.delete(place, True)

    def _write(self, system: Any, place: Any, content: bytes) -> None:
        stream = system.create(place, True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def _found(self, path: str) -> str:
        """Returns the path as Spark names it."""
        system, place = self._open(path)
        if not system.exists(place):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        status = system.getFileStatus(place)
        if status.isDirectory():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return str(status.getPath().toString())

    def _gateway(self) -> Any:
        return self._session().sparkContext._gateway

    def _hadoop(self) -> Any:
        return self._gateway().jvm.org.apache.hadoop.fs

    def _open(self, path: str) -> tuple[Any, Any]:
        settings = self._session()._jsparkSession.sessionState().newHadoopConf()
        try:
            place = self._hadoop().Path(path)
            return place.getFileSystem(settings), place
        except Py4JJavaError as error:
            raise BadInput(f"{path}: {error.java_exception.toString()}") from None
        except IllegalArgumentException as error:
            raise BadInput(f"{path}: {error}") from None


def open_files(path: str, session: Callable[[], SparkSession]) -> Files:
    """Returns the files at `path`, local or Hadoop's; only a URI needs a Spark session."""
    return HadoopFiles(session) if "://" in path else LocalFiles()


def escape_pattern(path: str) -> str:
    """Returns the path for Spark's readers, which take some characters for a pattern."""
    return "".join(f"\\{letter}" if letter in "[]{}*?\\" else letter for letter in path)


def _facts(path: str) -> Facts:
    digest, size = hashlib.md5(usedforsecurity=False), 0
    with open(path, "rb") as content:
        while chunk := content.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return Facts(size, b64encode(digest.digest()).decode())
