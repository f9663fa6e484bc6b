"""A site that makes reports in the background: which links of a page are broken."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, urlsplit

from equeue_rq import LMDBRedis, Queue
from flask import Flask, abort, redirect, render_template, request, url_for
from rq import Retry
from werkzeug import Response

from reports import check_links

HERE = Path(__file__).resolve().parent
# The variable is RQ's own: `rq worker` reads it, too.
STORE = os.environ.get("RQ_REDIS_URL", "lmdb://" + quote(str(HERE / "data")))

app = Flask(__name__)
queue = Queue("reports", connection=LMDBRedis.from_url(STORE))  # touches no disk yet


@app.get("/")
def index() -> str:
    return render_template("index.html", address=request.host_url)


@app.post("/reports")
def order() -> Response | tuple[str, int]:
    address = request.form.get("address", "").strip()
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        error = "The address of a page begins with http:// or https://."
        return render_template("index.html", address=address, error=error), 400
    job = queue.enqueue(
        check_links,
        address,
        retry=Retry(max=1),  # without, a job whose worker is killed is failed at once
        job_timeout=600,
        result_ttl=24 * 3600,
        description=address,
    )
    return redirect(url_for("report", job_id=job.id), 303)


@app.get("/reports/<job_id>")
def report(job_id: str) -> str:
    job = queue.fetch_job(job_id)
    if job is None:
        abort(404, "There is no such report, or no more: reports are kept for a day.")
    return render_template("report.html", job=job, findings=job.return_value())
