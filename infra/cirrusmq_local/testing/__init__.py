"""For tests, users' own ones too: the whole service in memory, and a subscriber that listens.

Nothing of the product uses it.
"""

from __future__ import annotations
