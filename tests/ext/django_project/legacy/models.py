"""Tables whose keys were integers of the database at first."""

from __future__ import annotations

from django.db import models

from mintage.ext.django import SnoField


class Customer(models.Model):
    name = models.CharField(max_length=20)
    joined = models.DateTimeField()
    number = SnoField(unique=True, editable=False)


class Invoice(models.Model):
    customer = models.ForeignKey(Customer, models.CASCADE)
