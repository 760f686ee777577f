"""Lambda's records of what failed, and the times that are still to be handed out again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cirrusmq.base.timestamps import parse_time
from cirrusmq.maintenance.unprocessed import uncovered, window_of

STREAM_FAILURE = {
    "requestContext": {
        "requestId": "316aa6d0-8154-4d1f-9af7-85d5f4a6bc81",
        "functionArn": "arn:aws:lambda:us-east-2:123456789012:function:cirrusmq-fan_out",
        "condition": "RetryAttemptsExhausted",
        "approximateInvokeCount": 1,
    },
    "responseContext": {
        "statusCode": 200,
        "executedVersion": "$LATEST",
        "functionError": "Unhandled",
    },
    "version": "1.0",
    "timestamp": "2026-11-14T00:13:49.717Z",
    "DDBStreamBatchInfo": {
        "shardId": "shardId-00000001573689847184-864758bb",
        "startSequenceNumber": "800000000003126276362",
        "endSequenceNumber": "800000000003126276399",
        "approximateArrivalOfFirstRecord": "2026-11-14T00:13:19Z",
        "approximateArrivalOfLastRecord": "2026-11-14T00:15:58Z",
        "batchSize": 7,
        "streamArn": "arn:aws:dynamodb:us-east-2:123456789012:table/m/stream/1",
    },
}


def with_context(**changes: Any) -> dict[str, Any]:
    return {**STREAM_FAILURE, "requestContext": {**STREAM_FAILURE["requestContext"], **changes}}  # type: ignore[dict-item]


def test_the_window_has_every_possible_time_of_a_record_of_the_stretch() -> None:
    # A call of 30 s and a clock 2 s behind before the first, a second and 2 s behind the last,
    # and whole minutes around both.
    window = window_of(json.dumps(STREAM_FAILURE))
    assert window == (
        parse_time("since", "2026-11-14T00:12:00Z"),
        parse_time("until", "2026-11-14T00:17:00Z"),
    )


@pytest.mark.parametrize("version", ["", ":$LATEST", ":live"])
def test_any_version_of_the_function_is_meant(version: str) -> None:
    arn = "arn:aws:lambda:us-east-2:123456789012:function:a-b-fan_out" + version
    assert window_of(json.dumps(with_context(functionArn=arn))) is not None


@pytest.mark.parametrize(
    "failure",
    [
        with_context(functionArn="arn:aws:lambda:us-east-2:123456789012:function:cirrusmq-meter"),
        with_context(functionArn="nonsense"),
        {**STREAM_FAILURE, "DDBStreamBatchInfo": None},
        {"requestContext": STREAM_FAILURE["requestContext"], "requestPayload": {"parked": "x"}},
        {**STREAM_FAILURE, "DDBStreamBatchInfo": {"shardId": "x"}},
        [],
        "text",
    ],
)
def test_any_other_failure_is_none(failure: Any) -> None:
    assert window_of(json.dumps(failure)) is None


def test_a_stretch_without_a_time_is_none() -> None:
    info = STREAM_FAILURE["DDBStreamBatchInfo"]
    assert isinstance(info, dict)
    for name in ("approximateArrivalOfFirstRecord", "approximateArrivalOfLastRecord"):
        failure = {**STREAM_FAILURE, "DDBStreamBatchInfo": {**info, name: "now"}}
        assert window_of(json.dumps(failure)) is None
    assert window_of("{") is None


@pytest.mark.parametrize(
    ("wanted", "covered", "left"),
    [
        ([(0, 9)], [], [(0, 9)]),
        ([(5, 9), (0, 5)], [], [(0, 9)]),
        ([(0, 9), (2, 3)], [], [(0, 9)]),
        ([(0, 4), (5, 9)], [], [(0, 4), (5, 9)]),
        ([(0, 9)], [(0, 9)], []),
        ([(2, 7)], [(0, 9)], []),
        ([(0, 9)], [(3, 5)], [(0, 3), (5, 9)]),
        ([(0, 9)], [(5, 12), (-3, 2)], [(2, 5)]),
        ([(0, 9)], [(9, 12)], [(0, 9)]),
        ([(0, 9)], [(7, 2)], [(0, 9)]),
    ],
)
def test_no_time_is_handed_out_twice(
    wanted: list[tuple[int, int]], covered: list[tuple[int, int]], left: list[tuple[int, int]]
) -> None:
    assert uncovered(wanted, covered) == left
