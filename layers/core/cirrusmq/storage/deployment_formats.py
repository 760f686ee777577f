"""The formats of a deployment's release, for clients that call its tables themselves.

    release 8   reads 2, writes 1      a library that writes 1 and reads 2 may
    release 9   reads 3, writes 2      a library that reads 1 alone may not, within a minute

The sweep writes the item where it differs. During a rollout either release may: a release reads
what the one before it writes, and writes what that one reads.
"""

from __future__ import annotations

from cirrusmq.base.formats import FORMAT, WRITTEN_FORMAT
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import key
from cirrusmq.storage.directory import FORMATS

_READS, _WRITES = "reads", "writes"


def note_formats(core: Core) -> None:
    """Writes down the formats of this release, if others stand there. Half a read unit."""
    wanted = {_READS: {"N": str(FORMAT)}, _WRITES: {"N": str(WRITTEN_FORMAT)}}
    table = core.tables.directory
    found = core.store.get(table, *FORMATS, consistent=False) or {}
    if wanted.items() <= found.items():
        return
    # Attributes of a later release stay.
    core.store.write("PutItem", {"TableName": table, "Item": found | key(*FORMATS) | wanted})


def formats_fit(core: Core) -> bool:
    """Returns True if this release reads what the deployment writes, and the other way round.

    False if the deployment has not told its formats yet.
    """
    found = core.store.get(core.tables.directory, *FORMATS, consistent=False)
    if found is None or not found.keys() >= {_READS, _WRITES}:
        return False
    return int(found[_WRITES]["N"]) <= FORMAT and int(found[_READS]["N"]) >= WRITTEN_FORMAT
