"""A program with a pool of workers."""

from __future__ import annotations

import os
import sys

import equeue_rq

from ._rq import begin

if __name__ == "__main__":
    # The arguments are those of `rq worker-pool`: -n NUMBER --worker-class CLASS
    number, of_class = sys.argv[sys.argv.index("-n") + 1], sys.argv[-1].rpartition(".")[2]
    begin()
    pool = equeue_rq.WorkerPool(
        ["default"],
        os.environ["RQ_REDIS_URL"],
        num_workers=int(number),
        worker_class=getattr(equeue_rq, of_class),
    )
    pool.start()
