"""The deployment's secret on one machine: a file of the data folder that its owner alone reads."""

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
"""Key of the secret in the Directory, in data folders from before this file existed."""


class SecretFile:
    """Holds the document that Secrets Manager keeps in an account of AWS."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def begin(self, engine: Engine, directory: str) -> None:
        """Makes the file if it is missing. Raises DataError if it is damaged.

        The secret of an older folder is moved from its table, so that no subscriber's signature
        changes: first it is written to the file, then deleted from the table. After a stop in
        between, the next start repeats the delete.
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
        """Raises DataError if the file is damaged."""
        try:
            msgspec.json.decode(self.read(), type=Generations)
        except msgspec.MsgspecError:
            raise DataError(
                f"{self._path} is damaged: put its copy back, or remove it, and the start makes"
                " another secret, whose signatures subscribers do not know yet"
            ) from None

    def read(self) -> str:
        """Returns the document. Raises DataError if it cannot be read."""
        with naming(self._path):
            return self._path.read_text(encoding="utf-8", errors="replace")

    def turn_over(self, now_ms: int) -> Generations:
        """Adds a generation and returns all. Raises InUse if the last is too new, or DataError."""
        with self._lock:
            document = turned_over(self.read(), now_ms, secrets.token_bytes(SECRET_BYTES))
            write_private(self._path, document + "\n")
        return msgspec.json.decode(document, type=Generations)
