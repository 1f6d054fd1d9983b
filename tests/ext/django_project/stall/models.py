"""Models that store each class of IDs in one form."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models

from mintage import ulid
from mintage.ext.django import JSONEncoder, SnoField, SnowflakeField, ULIDField, UUIDField


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


def made(name, **fields):
    globals()[name] = model = type(name, (models.Model,), {"__module__": __name__, **fields})  # where pickle finds it
    return model


def pointing(name, key):
    kind = models.ForeignKey(ContentType, models.CASCADE)
    return made(name, kind=kind, key=key, about=GenericForeignKey("kind", "key"))


def keyed(name, field):
    """Return a model with keys of one class, to which others point in the form of the key and in text."""
    arrays = {"many": ArrayField(field(), default=list)} if connection.vendor == "postgresql" else {}
    return made(
        f"By{name}",
        id=field(primary_key=True),
        note=models.JSONField(null=True),
        text=models.JSONField(null=True, encoder=JSONEncoder),
        near=GenericRelation(pointing(f"Near{name}", field()), "key", "kind"),
        far=GenericRelation(pointing(f"Far{name}", models.CharField(max_length=40)), "key", "kind"),
        **arrays,
    )


BY_KIND = {
    "sno, ulid, …": keyed("Sno", SnoField),
    "uuid": keyed("UUID", UUIDField),
    "snowflake": keyed("Snowflake", SnowflakeField),
    "uuid.UUID": keyed("Standard", partial(models.UUIDField, default=uuid4)),
}
