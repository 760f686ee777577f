"""A web application that sends."""

from __future__ import annotations

from flask import Flask, request

from cirrusmq_client import Client, Producer

app = Flask(__name__)
client = Client()
client.create_queue("orders")  # finds it at the next start
producer = Producer(client)


@app.post("/orders")
def place_order() -> tuple[dict[str, str], int]:
    sent = producer.send("orders", request.get_data())
    return {"message": sent.id}, 202
