"""Faults planted in the pure modules, to see whether their tests notice them."""

from __future__ import annotations
