from functools import cache

from django.contrib.auth.models import AbstractUser
from django.db import models

from mintage import Sequence
from mintage.ext.django import SnoField, TypeIDField, ULIDField


class User(AbstractUser):
    """Its key is a snowflake, as ``DEFAULT_AUTO_FIELD`` says."""


class Customer(models.Model):
    """Its key is seen in links and letters, so it says what it is: ``cust_…``."""

    id = TypeIDField(prefix="cust", primary_key=True)
    name = models.CharField(max_length=80)

    def __str__(self):
        return self.name


class Order(models.Model):
    id = SnoField(primary_key=True)
    buyer = models.ForeignKey(User, models.SET_NULL, null=True, blank=True)
    customer = models.ForeignKey(Customer, models.PROTECT, null=True, blank=True, related_name="orders")
    title = models.CharField(max_length=80)

    def __str__(self):
        return f"{self.title} ({self.pk})"


class Event(models.Model):
    id = ULIDField(primary_key=True, form="uuid")
    order = models.ForeignKey(Order, models.CASCADE, related_name="events")
    number = models.IntegerField()


@cache
def invoice_numbers():
    """Return the sequence of all workers; it is opened when the first of its numbers is needed."""
    return Sequence("invoices")


def next_invoice_number():
    return invoice_numbers().next()


class Invoice(models.Model):
    """Its number begins at 1; one that was taken for a transaction that failed stays unused."""

    order = models.OneToOneField(Order, models.PROTECT, related_name="invoice")
    number = models.BigIntegerField(unique=True, editable=False, default=next_invoice_number)
