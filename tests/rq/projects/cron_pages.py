"""Looks at the admin pages of the running cron scheduler."""

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.test import Client  # noqa: E402
from django_rq.utils import get_cron_schedulers  # noqa: E402

client = Client()
client.force_login(User.objects.create_superuser("boss"))
(scheduler,) = get_cron_schedulers()
home = client.get("/admin/django_rq/dashboard/")
print(scheduler.name in home.content.decode())
page = client.get(
    f"/admin/django_rq/dashboard/cron-schedulers/{scheduler.connection_index}/{scheduler.name}/"
)
print(page.status_code, "shipping" in page.content.decode())
