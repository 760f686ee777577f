from __future__ import annotations

RESERVED_WORDS: frozenset[str] = frozenset()
