"""The command line in processes of its own, forked from one that has imported it already.

Importing takes most of a short command's time.
`tests/local/test_cli.py` runs the installed program.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["cirrusmq_local.commands.cli"])
SECONDS = 60.0


def run_command(
    arguments: Sequence[str], *, env: Mapping[str, str], folder: Path, text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `cirrusmq` with the arguments in a folder, to its end; TimeoutExpired after a minute."""
    with tempfile.TemporaryDirectory() as given:
        streams = [Path(given, name) for name in ("in", "out", "err")]
        for stream in streams:
            stream.write_text(text if stream.name == "in" else "", encoding="utf-8")
        process = _CONTEXT.Process(target=_main, args=(arguments, dict(env), folder, streams))
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["cirrusmq", *arguments], SECONDS)
        _, out, err = (stream.read_text(encoding="utf-8") for stream in streams)
        return subprocess.CompletedProcess(["cirrusmq", *arguments], process.exitcode, out, err)


def _main(
    arguments: Sequence[str], env: Mapping[str, str], folder: Path, streams: Sequence[Path]
) -> None:
    from cirrusmq_local.commands.cli import main

    for number, stream in enumerate(streams):
        os.dup2(os.open(stream, os.O_RDWR), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (open(n, "w", encoding="utf-8", closefd=False) for n in (1, 2))  # noqa: SIM115
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.argv = ["cirrusmq", *arguments]
    main()
