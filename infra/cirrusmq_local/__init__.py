"""The service on one machine: the embedded cloud, a running stack, its commands."""

from __future__ import annotations
