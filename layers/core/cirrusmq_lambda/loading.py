"""Loading a function: this is imported before all else, and its module's last line ends it.

    import loading ──> … all other imports … ──> handler ──> finish_loading() ──> first call

Meanwhile no garbage is looked for: loading makes tens of thousands of objects and drops few, so
looking takes a tenth of the time and finds nothing. What is loaded stays for good, and is not
looked through later. The client of DynamoDB is made here and not in the first call, for which a
caller waits: Lambda loads with a whole CPU, whatever memory a function has. It opens no connection:
a snapshot of the environment (SnapStart) is taken after this, and started many times.

The libraries are imported first, from here, each below the one that needs it: that deep down in the
imports of our own modules they take up to a tenth longer. Python keeps its frames in pieces of
16 KB; a loop that calls over the end of a piece maps and unmaps memory in each turn, and compiling
urllib3's long regular expressions there did so thousands of times.

On one machine, where many functions share a process, nothing is made and garbage is looked for.
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
    """Make what every call needs; the function's module is loaded then."""
    if not _IN_LAMBDA:
        return
    from cirrusmq.wiring import bootstrap

    bootstrap.service()
    bootstrap.dynamodb()
    codecs.lookup("idna")  # by which the first connection encodes its host's name
    if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start":
        # botocore spreads its retries by it. What we draw ourselves comes from the system.
        import_module("snapshot_restore_py").register_after_restore(random.seed)
    gc.freeze()
    gc.enable()
