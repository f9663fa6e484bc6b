"""rq-scheduler's own scheduler, which moves what is due; prints what became of it."""

from datetime import datetime, timedelta, timezone

from common import STORE
from rq_scheduler import Scheduler

from equeue_rq import Queue, SimpleWorker, connect

NOW = datetime.now(timezone.utc)

store = connect(STORE)
scheduler = Scheduler(connection=store, interval=1)
later = scheduler.enqueue_in(timedelta(hours=1), "operator.mul", 1, 1)
once = scheduler.enqueue_at(NOW, "operator.mul", 2, 3)
twice = scheduler.schedule(NOW, "operator.mul", args=[4, 5], interval=60, repeat=2)
nightly = scheduler.cron("0 0 * * *", "operator.mul", args=[6, 7])
scheduler.change_execution_time(nightly, NOW)
print("scheduled", scheduler.count(), "due", len(list(scheduler.get_jobs(until=NOW))))

scheduler.run(burst=True)
queue = Queue("default", connection=store)
print("waiting", queue.count, "scheduled", scheduler.count())
SimpleWorker([queue], connection=store).work(burst=True, logging_level="ERROR")
print([job.return_value() for job in (once, twice, nightly, later)])

again = {job.id for job, _ in scheduler.get_jobs(with_times=True)}
print("again", again == {twice.id, nightly.id, later.id})
scheduler.cancel(twice)
print("cancelled", twice not in scheduler)
