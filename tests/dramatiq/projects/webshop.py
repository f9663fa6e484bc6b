"""A Flask application with flask-dramatiq; its workers inherit the broker by a fork."""

from functools import partial

from common import STORE, write
from flask import Flask, current_app
from flask_dramatiq import Dramatiq

from equeue_dramatiq import LMDBBroker

app = Flask(__name__)
app.config["DRAMATIQ_BROKER"] = partial(LMDBBroker, STORE)
dramatiq = Dramatiq(app)


@dramatiq.actor
def ship(order: int) -> None:
    write("ship", order, current_app.name)


@app.post("/orders/<int:order>")
def place(order: int) -> str:
    return str(ship.send(order).actor_name)


def shop() -> None:
    answer = app.test_client().post("/orders/7")
    print(answer.text)
