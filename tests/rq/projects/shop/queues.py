"""The queue of the Django project."""

from django_rq.queues import DjangoRQ

import equeue_rq


class Queue(equeue_rq.Queue, DjangoRQ):
    """A queue with django-rq's options, on a store."""
