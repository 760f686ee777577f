"""pytest's settings where faults are planted; copied beside the tests there."""

from __future__ import annotations

import sys

from hypothesis import Phase, settings

# Each call of a function with mutants takes three of Python's stack, and filters nest deep.
sys.setrecursionlimit(4_000)

# The same examples each time, and none made smaller: that something failed is all that counts.
settings.register_profile(
    "mutants",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=50,
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile("mutants")
