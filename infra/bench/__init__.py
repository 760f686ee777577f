"""Measurements: counted units, throughput and delay beside other queues, cost, growth."""

from __future__ import annotations
