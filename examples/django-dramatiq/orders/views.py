from functools import partial

from django.db import transaction
from django.http import HttpResponse
from django.views.generic import CreateView, DetailView

from orders.models import Order
from orders.tasks import confirm


class PlaceOrder(CreateView):
    model = Order
    fields = ["item", "email"]

    def form_valid(self, form) -> HttpResponse:
        with transaction.atomic():
            response = super().form_valid(form)
            # Sent at once, the worker might look for the order before it is committed.
            transaction.on_commit(partial(confirm.send, self.object.pk))
        return response


class OrderView(DetailView):
    model = Order
