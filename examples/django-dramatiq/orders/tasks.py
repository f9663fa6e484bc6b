"""The actors. `manage.py rundramatiq` looks for a module of this name in each application."""

import dramatiq
from django.core.mail import send_mail
from django.utils import timezone

from orders.models import Order


@dramatiq.actor(max_retries=10, min_backoff=1000, max_backoff=600_000)  # milliseconds
def confirm(order_id: int) -> None:
    """Mail to the customer that the order was placed."""
    order = Order.objects.get(pk=order_id)
    if order.confirmed_at is not None:
        return  # a message can be delivered twice
    try:
        send_mail(str(order), "Thank you. It is on its way.", "shop@example.org", [order.email])
    except Exception as error:
        Order.objects.filter(pk=order_id).update(problem=str(error))
        raise  # Dramatiq tries again
    Order.objects.filter(pk=order_id).update(confirmed_at=timezone.now(), problem="")
