"""Errors of the data folder, in one line that names the file and the remedy."""

from __future__ import annotations

import contextlib
import errno
import pwd
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from cirrusmq_local.engine.errors import OtherFormError
from cirrusmq_local.engine.store import code_of

_ADVICE = {
    errno.ENOSPC: "its disk is full: make space, then start again",
    errno.EDQUOT: "its disk is full for this user: make space, then start again",
    errno.EFBIG: "it would be larger than this process may make files: raise `ulimit -f`",
    errno.EROFS: "its disk is read-only: take another --data",
    errno.ENOENT: "its symbolic link leads nowhere: make what it names, or take another --data",
    errno.ENOTDIR: "a file is where a folder should be: move it away, or take another --data",
    errno.EEXIST: "a file is where a folder should be: move it away, or take another --data",
    errno.EISDIR: "a folder is where a file should be: move it away, or take another --data",
    errno.ELOOP: "its symbolic links lead in a circle: remove them, or take another --data",
    errno.ENAMETOOLONG: "the name is too long: take another --data",
}


class DataError(Exception):
    """An error and its remedy: one line that names the file."""


class DataInUseError(DataError):
    """Another stack runs on the same data."""


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turns an OSError into a DataError about this file or folder."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{path}: {_explain(path, error)}") from error


def _explain(path: Path, error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{error.strerror}{_owner(path)}: start as its owner, or take another --data"
    reason = error.strerror or str(error)
    return _ADVICE.get(error.errno or 0, f"{reason}: take another --data")


def _owner(path: Path) -> str:
    """Returns the owner of the file, or of the nearest folder above it that can be read."""
    for each in (path, *path.parents):
        with contextlib.suppress(OSError, KeyError):
            return f", {each} is of user {pwd.getpwuid(each.stat().st_uid).pw_name}"
    return ""


def explain_store(path: Path, error: Exception) -> str:
    """Returns the fault of a store that cannot be opened, and its remedy."""
    match code_of(error):
        case sqlite3.SQLITE_FULL:
            return f"{path}: {_ADVICE[errno.ENOSPC]}"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"{path} is locked by another program: end that"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return (
                f"{path} is damaged ({error}): put a copy of the folder in its place, or move the"
                " folder away to begin with an empty one"
            )
    if isinstance(error, OtherFormError):
        return (
            f"{path} is of another version ({error}): move the folder away, or take another --data"
        )
    return f"{path} cannot be opened ({error}): take another --data"
