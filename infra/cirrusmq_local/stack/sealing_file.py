"""The file with the key that encrypts the secrets of signing keys, in the place of KMS."""

from __future__ import annotations

import secrets
from pathlib import Path

from cirrusmq_local.cloud.sealing import KEY_BYTES, SealingKey
from cirrusmq_local.engine.data_errors import DataError, naming
from cirrusmq_local.stack.data import write_private


class SealingFile:
    """Holds the key in hexadecimal digits, readable by its owner alone; made if it is missing."""

    def __init__(self, path: Path) -> None:
        """Reads the file, or makes it. Raises DataError if it is damaged."""
        self.is_new = not path.exists()
        """True if the key was made now: no secret sealed before can be decrypted."""
        if self.is_new:
            write_private(path, secrets.token_hex(KEY_BYTES) + "\n")
        with naming(path):
            path.chmod(0o600)
        self.key = SealingKey(read_key(path))


def read_key(path: Path) -> bytes:
    """Returns the key in a file. Raises DataError if the file holds none."""
    with naming(path):
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise DataError(
            f"{path} is damaged: put its copy back, or remove it: then no signing key that was"
            " made before is good any more"
        )
    return key
