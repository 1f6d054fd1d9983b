"""The models of the release whose keys are UUIDs of version 4."""

import uuid

from django.db import models


class Order(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    customer = models.CharField(max_length=80)
    created = models.DateTimeField(auto_now_add=True)


class Line(models.Model):
    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    title = models.CharField(max_length=80)
