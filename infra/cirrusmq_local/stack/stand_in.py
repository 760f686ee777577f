"""In the place of an emulator of AWS: the port and the key that programs for those have set."""

from __future__ import annotations

import hashlib

from cirrusmq.access.keys import SIGNING_ID, AccessKey
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import access_key_key, account_access_key_key

PORT = 4566
WORD = "test"
"""The id that programs give, and the secret."""
_ID = f"{SIGNING_ID}{WORD}"
"""The key's own id: functions may open the secrets of such ids alone."""


def keep_known_key(core: Core, account: str, *, wanted: bool) -> None:
    """Have a signing key there that is found by the id `test`, or not: everybody knows its secret.

    It is written at each start: what could open its secret before may be gone. A start that does
    not want it removes it, so that a folder which once was a stand-in has no such key.
    """
    found_by, listed_by = access_key_key(WORD), account_access_key_key(account, _ID)
    if wanted:
        key = AccessKey(
            id=_ID,
            account=account,
            created_ms=core.now_ms(),
            secret_sha256=hashlib.sha256(WORD.encode()).hexdigest(),
            sealed_secret=core.sealing.seal(_ID, WORD),
            manages_keys=False,
            description="test with the secret test, while cirrusmq up --stand-in runs",
        )
        core.store.transact(
            [directory_writes.put(core, place, key) for place in (found_by, listed_by)]
        )
    elif directory.read(core, found_by, AccessKey) is not None:
        core.store.transact(
            [directory_writes.delete(core, place) for place in (found_by, listed_by)]
        )
    core.cache.turn_over(found_by)
