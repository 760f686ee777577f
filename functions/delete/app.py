"""POST …/messages/{delete,visibility,give-back,dead-letter}, for queues and pull subscriptions;
POST …/messages/{id}/reply of a queue"""

from __future__ import annotations

from cirrusmq_lambda.loading import finish_loading
from cirrusmq_lambda.http import Answer, Context, Event, serve
from cirrusmq_lambda.routes.receipts import ROUTES


def handler(event: Event, context: Context) -> Answer:
    return serve(ROUTES, event, context)


finish_loading()
