"""Outcomes of DynamoDB calls, in a form in which two services can be compared."""

from __future__ import annotations

import time
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from botocore.exceptions import ClientError

Outcome = dict[str, Any]
"""An answer without what a service adds; or an error's code, with its item and reasons."""

CANCELLED = "TransactionCanceledException"
_ADDED = ("ResponseMetadata", "ConsumedCapacity", "ItemCollectionMetrics")
_TRIES = 5
_WAIT_SECONDS = 0.2
_REST = {"batch_get_item": "UnprocessedKeys", "batch_write_item": "UnprocessedItems"}


def call(client: Any, method: str, request: Mapping[str, Any]) -> tuple[Outcome, float | None]:
    """Makes a call. Returns its outcome, and the units it consumed, if the answer has them.

    A batch that is done in part is sent again for its rest. Raises RuntimeError if a rest remains.
    """
    rest = _REST.get(method)
    asked = {**request, "ReturnConsumedCapacity": "TOTAL"}
    whole: Outcome = {}
    units: float | None = None
    for attempt in range(_TRIES):
        try:
            answer = getattr(client, method)(**asked)
        except ClientError as error:
            return _refused(error), None
        told = _units(answer.get("ConsumedCapacity"))
        units = units if told is None else (units or 0) + told
        _add(whole, {name: canonical(each) for name, each in answer.items() if name not in _ADDED})
        left = answer.get(rest) if rest is not None else None
        if rest is None or not left:
            return whole, units
        whole.pop(rest)
        asked = {**asked, "RequestItems": left}
        time.sleep(_WAIT_SECONDS * 2**attempt)
    raise RuntimeError(f"{method}: a part of the batch is refused again and again: throttled?")


def canonical(value: Any) -> Any:
    """A value in which equal numbers and sets are equal in any notation and order."""
    if isinstance(value, list):
        return [canonical(element) for element in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, content),) = value.items()
        if tag == "N":
            return {"N": Decimal(content)}
        if tag == "NS":
            return {"NS": sorted(map(Decimal, content))}
        if tag in ("SS", "BS"):
            return {tag: sorted(content)}
    return {name: canonical(member) for name, member in value.items() if name != "Message"}


def same(ours: Outcome, theirs: Outcome, *, wide: bool) -> bool:
    """True if two outcomes are equal; without `wide`, but for what moto does otherwise."""
    if not wide:
        if ours.get("code") == CANCELLED and "ValidationError" in _codes(ours):
            return theirs.get("code") in (CANCELLED, "ValidationException")
        if "LastEvaluatedKey" not in theirs and "Count" in theirs:
            ours = {name: value for name, value in ours.items() if name != "LastEvaluatedKey"}
    return ours == theirs


def _codes(shown: Outcome) -> list[str]:
    return [reason["Code"] for reason in shown["CancellationReasons"]]


def _refused(error: ClientError) -> Outcome:
    shown: Outcome = {"code": error.response["Error"]["Code"]}
    for name in ("Item", "CancellationReasons"):
        if error.response.get(name):
            shown[name] = canonical(error.response[name])
    return shown


def _units(told: Any) -> float | None:
    if not told:
        return None
    listed = told if isinstance(told, list) else [told]
    return float(sum(each["CapacityUnits"] for each in listed))


def _add(whole: Outcome, part: Outcome) -> None:
    """Joins the answer of a batch's rest to what came before; a batch has no order."""
    responses = part.get("Responses")
    if isinstance(responses, dict):
        held = whole.pop("Responses", {})
        part["Responses"] = {
            table: sorted([*held.get(table, []), *items], key=_place)
            for table, items in responses.items()
        }
    whole |= part


def _place(item: Outcome) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]
