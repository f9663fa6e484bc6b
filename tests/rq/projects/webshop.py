"""A Flask application that enqueues jobs and shows their results."""

import sys

from common import STORE, write
from flask import Flask, abort
from rq.exceptions import NoSuchJobError

from equeue_rq import Job, Queue

app = Flask(__name__)
queue = Queue("default", connection=STORE)


def ship(order: int) -> str:
    write("ship", order)
    return f"order {order} is on its way"


@app.post("/orders/<int:order>")
def place(order: int) -> tuple[str, int]:
    return str(queue.enqueue(ship, order).id), 202


@app.get("/jobs/<job_id>")
def look(job_id: str) -> str:
    try:
        job = Job.fetch(job_id, connection=STORE)
    except NoSuchJobError:
        abort(404)
    return str(job.return_value() or job.get_status().value)


if __name__ == "__main__":
    import webshop

    client = webshop.app.test_client()
    if len(sys.argv) > 1:
        answer = client.get(f"/jobs/{sys.argv[1]}")
        print(answer.status_code, answer.text)
    else:
        print(client.post("/orders/7").text)
