"""What views of the Django project do; prints a line for each."""

import django

django.setup()

import django_rq  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import reverse  # noqa: E402
from shop.tasks import fail, ship  # noqa: E402

queue = django_rq.get_queue("default")
with transaction.atomic():
    assert ship.delay(7) is None  # when the transaction is committed, that is
    print("in a transaction", queue.count)
bad = django_rq.get_queue("high").enqueue(fail, 8)
print("after it", queue.count)
call_command("rqworker", "high", "default", "--burst", "--verbosity", "0")
print("worked", queue.count, bad.get_status().value, queue.finished_job_registry.count)

client = Client()
client.force_login(User.objects.create_superuser("boss"))
ship.delay(9)


def page(name: str, **arguments: object) -> str:
    answer = client.get(reverse(f"admin:django_rq_{name}", kwargs=arguments))
    assert answer.status_code == 200, (name, answer.status_code)
    return answer.content.decode()


def press(name: str, **arguments: object) -> None:
    answer = client.post(reverse(f"admin:django_rq_{name}", kwargs=arguments))
    assert answer.status_code == 302, (name, answer.status_code)


DEFAULT, HIGH = {"queue_index": 0}, {"queue_index": 1}
assert "default" in page("home")
(waiting,) = queue.job_ids
assert waiting in page("jobs", **DEFAULT)
assert bad.id in page("failed_jobs", **HIGH)
(finished,) = queue.finished_job_registry.get_job_ids()
assert finished in page("finished_jobs", **DEFAULT)
for name in ("started_jobs", "deferred_jobs", "scheduled_jobs", "workers", "queue_details"):
    page(name, **DEFAULT)
assert "shop.tasks.fail" in page("job_detail", **HIGH, job_id=bad.id)
result = bad.latest_result()
assert "ValueError: 8" in page("result_detail", **HIGH, job_id=bad.id, result_id=result.id)
press("requeue_job", **HIGH, job_id=bad.id)
print("requeued", bad.get_status().value, django_rq.get_queue("high").count)
press("delete_job", **HIGH, job_id=bad.id)
press("clear", **DEFAULT)
print("deleted and emptied", django_rq.get_queue("high").count, queue.count)

statistics = Client(headers={"Authorization": "Bearer token"})
answer = statistics.get(reverse("admin:django_rq_home_json")).json()
print("statistics", [(each["name"], each["finished_jobs"]) for each in answer["queues"]])
metrics = statistics.get(reverse("admin:django_rq_metrics")).content.decode()
print("metrics", [line for line in metrics.splitlines() if 'status="finished"} 1' in line])
