"""The models of the release whose keys are sno IDs."""

from django.db import models

from mintage.ext.django import SnoField


class Order(models.Model):
    id = SnoField(primary_key=True)
    old_id = models.UUIDField(null=True, unique=True, editable=False)
    customer = models.CharField(max_length=80)
    created = models.DateTimeField(auto_now_add=True)


class Line(models.Model):
    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    title = models.CharField(max_length=80)
