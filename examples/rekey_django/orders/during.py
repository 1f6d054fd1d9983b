"""The models of the release that gives each new order its future key, and still uses the old one."""

import uuid

from django.db import models

from mintage import sno
from mintage.ext.django import SnoField


class Order(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    new_id = SnoField(null=True, unique=True, default=sno.new)
    customer = models.CharField(max_length=80)
    created = models.DateTimeField(auto_now_add=True)


class Line(models.Model):
    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    new_order_id = SnoField(null=True, db_index=True)
    title = models.CharField(max_length=80)
