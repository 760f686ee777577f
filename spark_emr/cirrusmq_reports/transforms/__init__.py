"""The transforms of the reports: one a file, which is named by its result.

    usage_records > usage_entries > usage_by_hour > charged_usage > invoice_lines, daily_charges

    current_items > messages > counts_by_age > figures_by_resource > named_figures > trends
    current_items > resource_names (used by named_figures) > figures_by_label

The first of each row reads exports; all others are functions of data frames alone.
"""

from __future__ import annotations
