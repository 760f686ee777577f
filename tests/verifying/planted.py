"""`cirrusmq` with a fault planted into it: `python -m tests.verifying.planted FAULT up …`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from tests.simulation.plants import PLANTS

from cirrusmq_local.commands.cli import main

if __name__ == "__main__":
    for path in (Path(__file__).parents[1] / "simulation").glob("*_plants.py"):
        importlib.import_module(f"tests.simulation.{path.stem}")
    PLANTS[sys.argv.pop(1)].patch(pytest.MonkeyPatch())
    main()
