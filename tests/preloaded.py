"""The modules of the service, imported before processes are forked (`forked.py`).

Only those that look at no variable of the environment while they are imported: the modules of
`cirrusmq_lambda` read theirs in each process anew.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from typer.testing import CliRunner

import cirrusmq
from cirrusmq_local.cloud.executions import import_interpreter
from cirrusmq_local.commands.cli import make_app

for _module in pkgutil.walk_packages(cirrusmq.__path__, "cirrusmq."):
    import_module(_module.name)
for _name in (
    "aws_lambda_powertools.metrics",
    "boto3",
    "cirrusmq_local.stack.stack",
    "cryptography.hazmat.primitives.ciphers.aead",
):
    import_module(_name)
import_interpreter()
# A command imports more while it runs. This one reads the certificates and calls nothing.
_NOWHERE = {
    "CIRRUSMQ_URL": "http://127.0.0.1:1",
    "CIRRUSMQ_ACCESS_KEY_ID": "none",
    "CIRRUSMQ_SECRET": "none",
}
assert CliRunner().invoke(make_app(), ["queue", "change", "none"], env=_NOWHERE).exit_code == 2
