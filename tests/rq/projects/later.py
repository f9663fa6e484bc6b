"""Hands a job to rq-scheduler, by way of django-rq."""

import datetime

import django

django.setup()

import django_rq  # noqa: E402
from shop.tasks import ship  # noqa: E402

django_rq.get_scheduler("default").enqueue_in(datetime.timedelta(seconds=1), ship, 3)
