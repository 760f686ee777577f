"""The whole service in one process: server, gateway, data folder, wired from `template.yaml`.

Started by `cirrusmq up` and by the tests of the running stack.
"""

from __future__ import annotations
