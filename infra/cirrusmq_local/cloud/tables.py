"""The template's tables as specifications for the engine."""

from __future__ import annotations

from cirrusmq_local.cloud.template import Template
from cirrusmq_local.engine import TableSpec


def table_specs(template: Template) -> list[TableSpec]:
    """Returns key, expiry and stream of each table."""
    return [
        TableSpec(
            table.name,
            partition_key=table.partition_key,
            sort_key=table.sort_key,
            ttl_attribute=table.ttl_attribute,
            stream=table.stream,
        )
        for table in template.tables
    ]
