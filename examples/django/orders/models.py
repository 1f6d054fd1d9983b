from django.contrib.auth.models import AbstractUser
from django.db import models

from mintage.ext.django import SnoField, ULIDField


class User(AbstractUser):
    """Its key is a snowflake, as ``DEFAULT_AUTO_FIELD`` says."""


class Order(models.Model):
    id = SnoField(primary_key=True)
    buyer = models.ForeignKey(User, models.SET_NULL, null=True, blank=True)
    title = models.CharField(max_length=80)

    def __str__(self):
        return f"{self.title} ({self.pk})"


class Event(models.Model):
    id = ULIDField(primary_key=True, form="uuid")
    order = models.ForeignKey(Order, models.CASCADE, related_name="events")
    number = models.IntegerField()
