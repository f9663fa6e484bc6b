"""What a view of the project does: sends, waits for a result, looks into the database."""

import time

import django

django.setup()

import dramatiq  # noqa: E402
from django_dramatiq.models import Task  # noqa: E402
from shop.tasks import count_orders, mutex  # noqa: E402

message = count_orders.send(6)
print(message.get_result(block=True, timeout=60_000))
while Task.tasks.filter(status="running").exists():  # the table is written after the result
    time.sleep(0.01)
later = count_orders.send_with_options(args=(0,), delay=3_600_000)
print(sorted(Task.tasks.values_list("status", flat=True)))
with mutex.acquire(), mutex.acquire(raise_on_failure=False) as second:
    print(second)
print(dramatiq.get_broker().get_queue_message_counts("default"))
