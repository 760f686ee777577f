"""Bodies in log records, for a client's own process: which it may read and write.

    a send      log record in L#<queue>#<partition>, then a parcel that has no `l`
    a receive   may it read that partition? ── yes ──> claims, then reads the record
                                            └── no ──> nothing is claimed: the URL

A policy made for an earlier release allows no records. After a claim this would be too late to
learn: the messages would stay leased without an answer. So it is asked once a minute and queue:
the answer is in the slow cache.
"""

from __future__ import annotations

from botocore.exceptions import ClientError

from cirrusmq.base.limits import OWN_RECORD_BYTES
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.storage.parcels import LOG, partition_key

_NO_RECORD = "0"
"""A sort key that no record has: half a read unit."""


def reads_bodies(core: Core, source: Source, parcel: Parcel) -> bool:
    """Returns True if the bodies of the parcel can be read in this client's own process."""
    if parcel.content is not None:
        return True
    if parcel.object_days or parcel.log is not None:
        return False
    log_id, partition = source.log_id, parcel.partition
    return core.slow_cache.get(("records", log_id), lambda: _may_read(core, log_id, partition))


def writes_record(log: Item | None, parcels: tuple[Item, ...]) -> bool:
    """Returns True if a client's own process may write these items of a send.

    Its policy allows no header of a record (`h`) and no name of another partition's log (`l`).
    """
    if log is None:
        return True
    small = len(log["b"]["B"]) < OWN_RECORD_BYTES if "b" in log else False
    return small and "h" not in log and not any("l" in parcel for parcel in parcels)


def _may_read(core: Core, log_id: str, partition: int) -> bool:
    pk = partition_key(LOG, log_id, partition)
    try:
        core.store.get_many(core.tables.messages, [(pk, _NO_RECORD)], consistent=False)
    except ClientError as error:
        if error.response["Error"]["Code"] != "AccessDeniedException":
            raise
        return False
    return True
