"""Models that store each class of IDs in one form."""

from __future__ import annotations

from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models

from mintage import ulid
from mintage.ext.django import SnoField, ULIDField


class Note(models.Model):
    kind = models.ForeignKey(ContentType, models.CASCADE)
    key = models.CharField(max_length=100)
    about = GenericForeignKey("kind", "key")


class Mark(models.Model):
    kind = models.ForeignKey(ContentType, models.CASCADE)
    key = SnoField()
    about = GenericForeignKey("kind", "key")


class Order(models.Model):
    id = SnoField(primary_key=True)
    public = ULIDField(form="text", default=ulid.new)
    notes = GenericRelation(Note, "key", "kind")
    marks = GenericRelation(Mark, "key", "kind")


class Ticket(models.Model):
    pass


if connection.vendor == "postgresql":
    from django.contrib.postgres.fields import ArrayField

    class Basket(models.Model):
        orders = ArrayField(SnoField())
