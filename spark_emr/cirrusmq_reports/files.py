"""The few things done to files outside Spark's own reading and writing, on disk or in a bucket."""

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
"""Files that are written at once in a bucket."""
_CHUNK_BYTES = 1 << 20
_MAKING = ".making"


@dataclass(frozen=True, slots=True)
class Facts:
    """A data file as it is."""

    size: int
    """In bytes."""
    digest: str
    """MD5 in base64."""


class Files(Protocol):
    """Paths are plain ones or URIs; a path that names nothing raises FileNotFoundError."""

    def read(self, path: str) -> bytes:
        """The content of a small file."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder, none where there is no folder."""

    def is_folder(self, path: str) -> bool | None:
        """Whether a folder is there, or a file; None where there is nothing."""

    def facts(self, paths: Iterable[str]) -> dict[str, Facts]:
        """The size and the digest of each data file."""

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Write files that are not there yet."""

    def replace(self, path: str, content: bytes) -> None:
        """Write a file so that a reader sees its old or its new content, never a part."""

    def remove(self, folder: str) -> None:
        """Remove a folder with all that is in it, if it is there."""


class LocalFiles:
    """Files on this machine's disk."""

    def read(self, path: str) -> bytes:
        """The content of a small file."""
        return Path(path).read_bytes()

    def names(self, folder: str) -> list[str]:
        """The names in a folder, none where there is no folder."""
        return sorted(os.listdir(folder)) if Path(folder).is_dir() else []

    def is_folder(self, path: str) -> bool | None:
        """Whether a folder is there, or a file; None where there is nothing."""
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def facts(self, paths: Iterable[str]) -> dict[str, Facts]:
        """The size and the digest of each data file: as many at once as there are processors."""
        named = [*paths]
        # The digest is worked out without Python's lock, and a file is never in memory whole.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return dict(zip(named, pool.map(_facts, named), strict=True))

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Write files that are not there yet."""
        for path, content in contents.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            try:
                Path(path).write_bytes(content)
            except OSError as error:
                # On a disk that is full, it is the writing that fails, which names no file.
                raise OSError(error.errno, error.strerror, path) from error

    def replace(self, path: str, content: bytes) -> None:
        """Write it beside its place, then rename it."""
        making = Path(f"{path}.{uuid.uuid4().hex}{_MAKING}")
        try:
            self.write({str(making): content})
            os.replace(making, path)
        finally:
            making.unlink(missing_ok=True)

    def remove(self, folder: str) -> None:
        """Remove a folder with all that is in it, if it is there."""
        if Path(folder).is_dir():
            shutil.rmtree(folder)


class HadoopFiles:
    """Files behind one of Hadoop's file systems, S3 above all."""

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self._session = session

    def read(self, path: str) -> bytes:
        """The content of a small file."""
        frame = self._session().read.format("binaryFile").load(escape_pattern(self._found(path)))
        return bytes(frame.select("content").collect()[0]["content"])

    def names(self, folder: str) -> list[str]:
        """The names in a folder, none where there is no folder."""
        system, path = self._open(folder)
        if not system.exists(path):
            return []
        return sorted(status.getPath().getName() for status in system.listStatus(path))

    def is_folder(self, path: str) -> bool | None:
        """Whether a folder is there, or a file; None where there is nothing."""
        # The slash makes a bucket its own root folder; elsewhere it is dropped.
        system, place = self._open(f"{path}/")
        if not system.exists(place):
            return None
        return bool(system.getFileStatus(place).isDirectory())

    def facts(self, paths: Iterable[str]) -> dict[str, Facts]:
        """The size and the digest of each data file, worked out by the executors.

        The driver never sees the bytes, and the work spreads as reading does. It reads each file
        a second time, which costs a twentieth of the CPU time of parsing it. The entity tag that
        a listing shows would be cheaper, but that of a multi-part upload is no digest of the
        content, and Spark's listing does not hand it out.
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
        """Spark's name of each file → the path, by one listing a folder.

        Asking for each file would be two calls of the store a file, one after the other.
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
                # What the listing does not have is asked for by itself, and told.
                found[name or self._found(path)] = path
        return found

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Write files that are not there yet, several at once: each waits for its store."""

        def write(path: str) -> None:
            self._write(*self._open(path), contents[path])

        with ThreadPoolExecutor(WRITERS) as pool:
            # Its results are asked for, so that a failure is raised.
            for _ in pool.map(write, contents):
                pass

    def replace(self, path: str, content: bytes) -> None:
        """An object appears whole when it is closed; elsewhere a rename does that."""
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
        """Remove a folder with all that is in it, if it is there."""
        system, place = self._open(folder)
        system.delete(place, True)

    def _write(self, system: Any, place: Any, content: bytes) -> None:
        stream = system.create(place, True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def _found(self, path: str) -> str:
        """The path as Spark names it."""
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
    """The files at `path`, local or Hadoop's; only a URI asks for a Spark session."""
    return HadoopFiles(session) if "://" in path else LocalFiles()


def escape_pattern(path: str) -> str:
    """The path for Spark's readers, which would take some characters for a pattern."""
    return "".join(f"\\{letter}" if letter in "[]{}*?\\" else letter for letter in path)


def _facts(path: str) -> Facts:
    digest, size = hashlib.md5(usedforsecurity=False), 0
    with open(path, "rb") as content:
        while chunk := content.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return Facts(size, b64encode(digest.digest()).decode())
