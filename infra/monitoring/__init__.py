"""Makes the dashboards for Grafana: one declaration, a file for each data source."""

from __future__ import annotations
