"""The jobs of the Django project."""

import django_rq
from common import write


@django_rq.job
def ship(order: int) -> int:
    write("ship", order)
    return order


def fail(order: int) -> None:
    raise ValueError(order)
