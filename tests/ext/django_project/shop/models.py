"""A table for each format and storage form, and a shop."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models

from mintage import sno, snowflake
from mintage.ext.django import (
    FIELDS,
    JSONEncoder,
    Minter,
    SnoField,
    SnowflakeField,
    TypeIDField,
    ULIDField,
)

ROWS = {}
"""By format and form."""

for _name, _field in {**FIELDS, "typeid": TypeIDField}.items():
    for _form in _field.forms():
        _options = {} if _name == "snowflake" else {"form": _form}
        _options |= {"prefix": "user"} if _name == "typeid" else {}
        _class = f"{_name.title()}{_form.title()}"
        ROWS[_name, _form] = type(
            _class,
            (models.Model,),
            {
                "__module__": __name__,
                "id": _field(primary_key=True, **_options),
                "other": _field(null=True, blank=True, unique=True, **_options),
                "parent": models.ForeignKey("self", models.CASCADE, null=True, blank=True, related_name="children"),
                "name": models.CharField(max_length=40, default="", blank=True),
            },
        )


class User(AbstractUser):
    pass


class Tag(models.Model):
    name = models.CharField(max_length=20, unique=True)

    def __str__(self):
        return self.name


class Order(models.Model):
    id = SnoField(primary_key=True)
    buyer = models.ForeignKey(User, models.CASCADE, null=True, blank=True)
    tags = models.ManyToManyField(Tag, blank=True)
    public = ULIDField(null=True, blank=True, unique=True)
    title = models.CharField(max_length=40, blank=True)
    extra = models.JSONField(encoder=JSONEncoder, default=dict, blank=True)

    def __str__(self):
        return str(self.pk)


class Line(models.Model):
    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    reference = SnoField(default=sno.new, unique=True)


class Coupon(models.Model):
    code = SnowflakeField(unique=True, default=snowflake.new)


class Redemption(models.Model):
    coupon = models.ForeignKey(Coupon, models.CASCADE, to_field="code", null=True)


class Refund(models.Model):
    order = models.OneToOneField(Order, models.CASCADE, primary_key=True)


class Tweet(models.Model):
    id = SnowflakeField(primary_key=True, layout=snowflake.TWITTER)
    reply = SnowflakeField(layout=snowflake.TWITTER, null=True, default=Minter(snowflake.TWITTER))
    safe = SnowflakeField(layout=snowflake.JS_SAFE, default=Minter(snowflake.JS_SAFE))
    about = SnowflakeField(layout=snowflake.DISCORD, null=True)
