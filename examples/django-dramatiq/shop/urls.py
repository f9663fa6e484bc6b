from django.urls import path

from orders.views import OrderView, PlaceOrder

urlpatterns = [
    path("", PlaceOrder.as_view(), name="place"),
    path("orders/<int:pk>/", OrderView.as_view(), name="order"),
]
