"""The file in the place of the key of KMS that encrypts the secrets of signing keys."""

from __future__ import annotations

import secrets
from pathlib import Path

from cirrusmq_local.cloud.sealing import KEY_BYTES, SealingKey
from cirrusmq_local.engine.data_errors import DataError, naming
from cirrusmq_local.stack.data import write_private


class SealingFile:
    """Holds the key in hexadecimal digits, for its owner's eyes alone; made where there is none."""

    def __init__(self, path: Path) -> None:
        """Read it; DataError where it is damaged."""
        self.is_new = not path.exists()
        """Whether nothing that was sealed before can be opened."""
        if self.is_new:
            write_private(path, secrets.token_hex(KEY_BYTES) + "\n")
        with naming(path):
            path.chmod(0o600)
        self.key = SealingKey(read_key(path))


def read_key(path: Path) -> bytes:
    """The key in a file; DataError where it holds none."""
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
