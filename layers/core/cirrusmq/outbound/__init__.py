"""Requests that leave the deployment: their addresses, their content and how they are sent."""

from __future__ import annotations
