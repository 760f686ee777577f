"""Subscriptions of topics: create, change, show, delete, confirm"""

from __future__ import annotations

from cirrusmq_lambda.loading import finish_loading
from cirrusmq_lambda.http import Answer, Context, Event, serve
from cirrusmq_lambda.routes.subscriptions import ROUTES


def handler(event: Event, context: Context) -> Answer:
    return serve(ROUTES, event, context)


finish_loading()
