"""The queues that the cells play: a server and a client of each."""

from __future__ import annotations
