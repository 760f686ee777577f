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
    """What tells the events and tables of one data folder from those of others."""

    def table(self, name: Any) -> Table:
        """The table of that name; MissingTableError."""
        table = self.tables.get(name)
        if table is None:
            raise MissingTableError(str(name))
        return table
