"""Loads a function: its module imports this first, and calls `finish_loading` in its last line.

    import loading ──> … all other imports … ──> handler ──> finish_loading() ──> first call

During the imports garbage collection is off: loading makes tens of thousands of objects and drops
few, so a collection takes a tenth of the time and finds nothing. Loaded objects stay forever, and
later collections skip them. The client of DynamoDB is made here and not in the first call, for
which a caller waits: Lambda loads with a whole CPU, whatever memory a function has. It opens no
connection: a snapshot of the environment (SnapStart) is taken after this, and started many times.

The libraries are imported here first, each before the library that needs it: deep in the imports of
our own modules they would take up to a tenth longer. Python keeps its frames in pieces of 16 KB; a
loop that calls over the end of a piece maps and unmaps memory each time, and compiling urllib3's
long regular expressions there did so thousands of times.

On one machine, many functions share a process: no client is made, and garbage is collected.
"""

from __future__ import annotations

import codecs
import gc
import os
import random
from importlib import import_module

_IN_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME" in os.environ

if _IN_LAMBDA:
    gc.disable()

for _library in ("urllib3", "botocore.session", "msgspec"):
    import_module(_library)


def finish_loading() -> None:
    """Makes the objects that every call needs; then the function's module is loaded."""
    if not _IN_LAMBDA:
        return
    from cirrusmq.wiring import bootstrap

    bootstrap.service()
    bootstrap.dynamodb()
    codecs.lookup("idna")  # by which the first connection encodes its host's name
    if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start":
        # botocore spreads its retries by it. Our own random numbers come from the system.
        import_module("snapshot_restore_py").register_after_restore(random.seed)
    gc.freeze()
    gc.enable()
