"""The service on one machine: the cloud played on an engine, a running stack, its commands."""

from __future__ import annotations
