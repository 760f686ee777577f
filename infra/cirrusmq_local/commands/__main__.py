"""`python -m cirrusmq_local.commands`: the command line."""

from __future__ import annotations

from cirrusmq_local.commands.cli import main

main()
