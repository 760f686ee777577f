"""POST …/messages/receive and …/messages/peek, for queues and pull subscriptions; calls that name a
queue's message by its id"""

from __future__ import annotations

from cirrusmq_lambda.loading import finish_loading
from cirrusmq_lambda.http import Answer, Context, Event, serve
from cirrusmq_lambda.routes.receiving import ROUTES


def handler(event: Event, context: Context) -> Answer:
    return serve(ROUTES, event, context)


finish_loading()
