"""POST /topics/{topic}/messages, and …/half/commit, …/half/rollback, …/half/receive"""

from __future__ import annotations

from cirrusmq_lambda.loading import finish_loading
from cirrusmq_lambda.http import Answer, Context, Event, serve
from cirrusmq_lambda.routes.publishing import ROUTES


def handler(event: Event, context: Context) -> Answer:
    return serve(ROUTES, event, context)


finish_loading()
