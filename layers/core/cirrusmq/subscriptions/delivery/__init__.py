"""An HTTP subscription's deliveries: its state, and marks of messages that wait."""

from __future__ import annotations
