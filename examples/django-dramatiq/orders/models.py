from django.db import models
from django.urls import reverse


class Order(models.Model):
    item = models.CharField(max_length=200)
    email = models.EmailField()
    placed_at = models.DateTimeField(auto_now_add=True)
    confirmed_at = models.DateTimeField(null=True, editable=False)
    problem = models.TextField(blank=True, editable=False)

    def __str__(self) -> str:
        return f"Order {self.pk}: {self.item}"

    def get_absolute_url(self) -> str:
        return reverse("order", args=[self.pk])
