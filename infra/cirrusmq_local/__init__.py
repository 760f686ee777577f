"""The service on one machine: AWS played by `cloud` on an engine, a running `stack`, its commands."""

from __future__ import annotations
