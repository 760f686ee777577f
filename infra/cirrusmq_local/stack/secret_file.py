"""The deployment's secret on one machine: a file of the data folder, for its owner alone."""

from __future__ import annotations

import secrets
import threading
from pathlib import Path

import msgspec

from cirrusmq.runtime.secret import SECRET_BYTES, Generations, turned_over, written
from cirrusmq_local.engine import Engine
from cirrusmq_local.engine.data_errors import DataError, naming
from cirrusmq_local.stack.data import write_private

_EARLIER_PLACE = {"pk": {"S": "deployment"}, "sk": {"S": "secret"}}
"""Of the secret in the Directory, in data folders that were begun before this file was."""


class SecretFile:
    """Holds the document that Secrets Manager keeps in an account."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def begin(self, engine: Engine, directory: str) -> None:
        """Make the file where there is none; DataError where it is damaged.

        The secret of an older folder is moved from its table, so that no subscriber's signature
        changes: first into the file, then out of the table, which is repeated where it stops.
        """
        place = {"TableName": directory, "Key": _EARLIER_PLACE}
        if not self._path.exists():
            held = engine.execute("GetItem", {**place, "ConsistentRead": True}).get("Item")
            key = held["document"]["S"] if held else secrets.token_bytes(SECRET_BYTES).hex()
            write_private(self._path, written(Generations(key=key)) + "\n")
        engine.execute("DeleteItem", place)
        self._path.chmod(0o600)
        self.check()

    def check(self) -> None:
        """DataError where it is damaged."""
        try:
            msgspec.json.decode(self.read(), type=Generations)
        except msgspec.MsgspecError:
            raise DataError(
                f"{self._path} is damaged: put its copy back, or remove it, and the start makes"
                " another secret, whose signatures subscribers do not know yet"
            ) from None

    def read(self) -> str:
        """The document; DataError."""
        with naming(self._path):
            return self._path.read_text(encoding="utf-8", errors="replace")

    def turn_over(self, now_ms: int) -> Generations:
        """Add a generation; InUse, DataError."""
        with self._lock:
            document = turned_over(self.read(), now_ms, secrets.token_bytes(SECRET_BYTES))
            write_private(self._path, document + "\n")
        return msgspec.json.decode(document, type=Generations)
