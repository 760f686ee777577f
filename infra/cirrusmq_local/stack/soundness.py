"""Checks if a stack could start on a data folder, without a change to it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from cirrusmq_local.cloud.clock import ScaledClock
from cirrusmq_local.cloud.tables import table_specs
from cirrusmq_local.cloud.template import TEMPLATE, load
from cirrusmq_local.engine.data_errors import DataError, explain_store, naming
from cirrusmq_local.engine.errors import OtherFormError
from cirrusmq_local.engine.inspection import inspect_store
from cirrusmq_local.stack.data import DataFolder
from cirrusmq_local.stack.sealing_file import read_key
from cirrusmq_local.stack.secret_file import SecretFile


def check_data(path: Path) -> None:
    """Raises DataError with the first fault that would stop a start, and its remedy."""
    folder = DataFolder(path)
    with naming(folder.path):
        names = {each.name for each in folder.path.iterdir()}
        if not os.access(folder.path, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    folder.read_connection()
    ScaledClock(folder.clock)
    if folder.secret.name in names:
        SecretFile(folder.secret).check()
    if folder.sealing.name in names:
        read_key(folder.sealing)
    if folder.store.name not in names:
        return
    with naming(folder.store):
        folder.store.open("rb").close()
    try:
        inspect_store(folder.store, table_specs(load(TEMPLATE)))
    except (sqlite3.Error, OtherFormError) as error:
        raise DataError(explain_store(folder.store, error)) from error
