"""The command line in processes of its own, to their ends."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.forked import Forked

SECONDS = 60.0
"""For a command that ends as soon as it can."""


def run_command(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: Path,
    text: str | bytes = "",
    terminal: int | None = None,
    seconds: float = SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run `cirrusmq` with the arguments in a folder, to its end; TimeoutExpired after `seconds`.

    `text` is its input, unless `terminal` is.
    """
    with tempfile.TemporaryDirectory() as given:
        stdin, stderr = Path(given, "in"), Path(given, "err")
        stdin.write_bytes(text if isinstance(text, bytes) else text.encode())
        stderr.touch()
        process = Forked(
            arguments,
            env=env,
            folder=folder,
            stdin=str(stdin) if terminal is None else os.ttyname(terminal),
            stderr=stderr,
        )
        impatience = threading.Timer(seconds, process.kill)
        impatience.start()
        with process.stdout:
            out = process.stdout.read()
        code = process.wait()
        impatience.cancel()
        if code == -9:
            raise subprocess.TimeoutExpired(process.args, seconds)
        return subprocess.CompletedProcess(
            process.args, code, out, stderr.read_text(encoding="utf-8")
        )
