"""`cirrusmq` with a fault planted into it: `python -m tests.verifying.planted FAULT up …`."""

from __future__ import annotations

import sys

import pytest
from tests.simulation.plants import every_plant

from cirrusmq_local.commands.cli import main

if __name__ == "__main__":
    every_plant()[sys.argv.pop(1)].patch(pytest.MonkeyPatch())
    main()
