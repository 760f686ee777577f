"""Makes the parcels of receivers and subscriptions from log records, as the stream brings them."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.dynamo_db_stream_event import DynamoDBRecord

from cirrusmq import bootstrap
from cirrusmq.parking import fan_out_or_park
from cirrusmq_lambda.http import Context
from cirrusmq_lambda.observability import logger
from cirrusmq_lambda.streams import read_record

processor = BatchProcessor(
    event_type=EventType.DynamoDBStreams, raise_on_entire_batch_failure=False
)


def deliver(record: DynamoDBRecord) -> None:
    change = read_record(record.raw_event)
    if change.after is not None:
        error = fan_out_or_park(bootstrap.service(), change.after, change.time_ms)
        if error is not None:
            logger.error("a record is parked, and tried each minute", exc_info=error)


def handler(event: dict[str, Any], context: Context) -> Any:
    return process_partial_response(event=event, record_handler=deliver, processor=processor)
