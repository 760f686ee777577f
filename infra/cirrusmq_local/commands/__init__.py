"""The command line: `cirrusmq up`, and the commands of a running service.

They call the service over HTTP. Only `up`, `down`, `report` and `doctor` use the stack itself.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - an older one would fail at some import below
    here = ".".join(map(str, sys.version_info[:2]))
    sys.exit(
        f"cirrusmq: Python 3.11 or newer is needed, this is {here}: install one, then make"
        " PYTHON=<its path> up"
    )
