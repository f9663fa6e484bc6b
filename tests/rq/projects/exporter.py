"""rq-exporter's page, on the port that is given."""

import os
import threading

from common import STORE
from prometheus_client import REGISTRY, start_http_server
from rq_exporter.collector import RQCollector

from equeue_rq import Queue, Worker, connect

REGISTRY.register(RQCollector(connect(STORE), Worker, Queue))
start_http_server(int(os.environ["PORT"]), addr="127.0.0.1")
threading.Event().wait()
