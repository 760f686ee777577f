"""The shared parts of every operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cirrusmq_local.engine.capacity import Meter
from cirrusmq_local.engine.errors import MissingTableError
from cirrusmq_local.engine.schema import Table
from cirrusmq_local.engine.store import Store


@dataclass(frozen=True, slots=True)
class Core:
    """The database, its tables by name, and the meter."""

    store: Store
    tables: Mapping[str, Table]
    meter: Meter
    folder_id: str = ""
    """Random id that distinguishes this data folder's events and tables from another folder's."""

    def table(self, name: Any) -> Table:
        """Returns the table of this name. Raises MissingTableError."""
        table = self.tables.get(name)
        if table is None:
            raise MissingTableError(str(name))
        return table
