"""Makes Grafana's JSON of the dashboard for a data source: Prometheus or CloudWatch.

Source:
https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .panels import PANELS, Aws, Line, Panel

Target: TypeAlias = dict[str, Any]

COLUMNS, WIDTH, HEIGHT = 3, 8, 8
PERIOD_SECONDS = 60
MAX_LINES = 20
NAMESPACE = "CirrusMQ/$stack"


def prometheus() -> dict[str, Any]:
    """Returns the dashboard over the figures of `GET /metrics`."""
    variables = [_source("prometheus")]
    return _dashboard("cirrusmq-prometheus", "CirrusMQ", "prometheus", variables, _prometheus)


def cloudwatch() -> dict[str, Any]:
    """Returns the dashboard over the figures in the functions' logs."""
    variables = [
        _source("cloudwatch"),
        _query("region", "Region", "regions()"),
        {"name": "stack", "label": "Stack", "type": "textbox", "query": "cirrusmq"},
        *(
            _query(each.variable, each.dimension, _values_of(each), many=True)
            for each in _of_aws().values()
        ),
    ]
    return _dashboard(
        "cirrusmq-cloudwatch", "CirrusMQ in AWS", "cloudwatch", variables, _cloudwatch
    )


def _of_aws() -> dict[str, Aws]:
    """Returns AWS's own metrics, one for each variable."""
    lines = [line for panel in PANELS for line in panel.lines]
    return {line.aws.variable: line.aws for line in lines if line.aws is not None}


def _values_of(aws: Aws) -> str:
    return f"dimension_values($region,{aws.namespace},{aws.metric},{aws.dimension})"


def _dashboard(
    uid: str,
    title: str,
    source: str,
    variables: Sequence[dict[str, Any]],
    target: Callable[[Line], Target],
) -> dict[str, Any]:
    return {
        "uid": uid,
        "title": title,
        "tags": ["cirrusmq"],
        "schemaVersion": 39,
        "editable": True,
        "timezone": "",
        "refresh": "1m",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": list(variables)},
        "panels": [_panel(number, panel, source, target) for number, panel in enumerate(PANELS)],
    }


def _panel(
    number: int, panel: Panel, source: str, target: Callable[[Line], Target]
) -> dict[str, Any]:
    row, column = divmod(number, COLUMNS)
    datasource = {"type": source, "uid": "${source}"}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": datasource,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": _unit(panel, source), "min": 0}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": datasource, **target(line)}
            for place, line in enumerate(panel.lines)
        ],
    }


def _unit(panel: Panel, source: str) -> str:
    aws = panel.lines[0].aws if source == "cloudwatch" else None
    return (aws and aws.display) or panel.display


def _source(kind: str) -> dict[str, Any]:
    return {"name": "source", "label": "Data source", "type": "datasource", "query": kind}


def _query(name: str, label: str, query: str, *, many: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": {"type": "cloudwatch", "uid": "${source}"},
        "query": query,
        "refresh": 1,
        "multi": many,
        "includeAll": many,
    }


def _prometheus(line: Line) -> Target:
    name, by = line.figure.name, ", ".join(line.by)
    legend = " ".join([line.legend, *("{{" + label + "}}" for label in line.by)]).strip()
    if line.quantile is not None:
        rates = f"sum by (le) (rate({name}_bucket[$__rate_interval]))"
        return {"expr": f"histogram_quantile({line.quantile}, {rates})", "legendFormat": legend}
    over = f"sum by ({by})" if by else "sum"
    if line.figure.counts:
        expression = f"{over} (rate({name}[$__rate_interval])) * {PERIOD_SECONDS}"
    else:
        expression = f"topk({MAX_LINES}, {over} ({name}))" if by else f"{over} ({name})"
    return {"expr": expression, "legendFormat": legend}


def _cloudwatch(line: Line) -> Target:
    statistic = "Sum" if line.figure.counts else "Maximum"
    if line.quantile is not None:
        statistic = f"p{line.quantile * 100:g}"
    asked: Target = {"region": "$region", "period": str(PERIOD_SECONDS), "label": line.legend}
    if line.aws is not None:
        metric = {
            "namespace": line.aws.namespace,
            "metricName": line.aws.metric,
            "dimensions": {line.aws.dimension: f"${line.aws.variable}"},
        }
    elif line.by:
        named = f'{{{NAMESPACE},{",".join(line.by)}}} MetricName="{line.figure.name}"'
        search = f"SEARCH('{named}', '{statistic}', {PERIOD_SECONDS})"
        return asked | {
            "queryMode": "Metrics",
            "metricQueryType": 0,
            "metricEditorMode": 1,
            "expression": search,
        }
    else:
        metric = {"namespace": NAMESPACE, "metricName": line.figure.name, "dimensions": {}}
    return (
        asked
        | metric
        | {
            "queryMode": "Metrics",
            "metricQueryType": 0,
            "metricEditorMode": 0,
            "matchExact": True,
            "statistic": statistic,
        }
    )
